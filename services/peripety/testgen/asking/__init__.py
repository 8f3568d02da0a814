"""How tests are asked for, and taken out of an answer while it is being written."""
