"""The laboratory: the paper's experiments, robustness protocols, rivals and public data sets.

It is a plug-in of `sacm` like anybody's package: the entry point `lab` of the group
`sacm.plugins` imports this module, and `sacm` never imports it otherwise.
"""
