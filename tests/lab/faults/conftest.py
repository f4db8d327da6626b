from tests.cli.conftest import sacm as sacm
