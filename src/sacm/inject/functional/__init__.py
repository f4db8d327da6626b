"""Coverage beyond modules: dropout that a forward calls as a function.

`torch.nn.functional.dropout`, `torch.dropout`, the `dropout_p` of scaled-dot-product attention and
the attention dropout inside `nn.MultiheadAttention` have no module that could be replaced. They are
intercepted instead:

1. Every module that may make such calls (an owner) gets a stand-in for its `forward` as an instance
   attribute (`coverage.py`). Keys, hooks, class and identity of the module do not change.
2. In training the stand-in of the outermost owner opens a `TorchFunctionMode`. Torch shows this
   mode every function call; calls that drop are led to a handler, all others run as they are. The
   innermost owner on the stack is the one whose code makes the call.
3. The handler (`handlers.py`, `attention.py`) asks the owner for the site of this call. A site is
   known by its owner, the name of the function and the position among the owner's calls of this
   function: `encoder.attention:dropout[1]`. It drops at the windows' own rates.
4. During a probe the activation is shown to the probe instead of being dropped. After it, owners
   that made no such call get their own forward back.

Owners, not the model, carry the stand-in because activation checkpointing re-runs single modules
in the backward pass. In evaluation the stand-in calls the original forward directly.
"""
