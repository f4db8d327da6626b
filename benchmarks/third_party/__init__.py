"""`attach` on models of other libraries, each judged from outside."""
