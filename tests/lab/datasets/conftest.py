from tests.cli.conftest import sacm as sacm
from tests.data.conftest import own_cache as own_cache
from tests.data.conftest import real_data as real_data
