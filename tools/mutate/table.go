package main

// tables are all mutants: mistakes that would change what people get, and that a test kills. Texts
// are short, so that they outlive changes around them. A new one is tried with -only ID.
var tables = [][]mutant{sampling, training, judging, learning, caching, sealing, ingesting, computing, streaming}
