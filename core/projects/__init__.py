"""List, pack, unpack, label and remove projects and their runs; describe this machine and check its privacy."""
