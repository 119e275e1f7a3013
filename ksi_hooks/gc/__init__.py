"""ksi-gc: finds what no hook deleted, deletes it as its owner, and says what it did."""
