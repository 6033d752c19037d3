"""The keys under which a file says what its columns cannot: Parquet's metadata, notes of SWF's header."""

SYNTHETIC = "hakaru.synthetic"
FACTS = "hakaru.facts"
CLUSTER = "hakaru.cluster"
