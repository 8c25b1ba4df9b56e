package main

// tables are all mutants: what is worth breaking, and was, by mistake, somewhere once. Texts are short, so that they outlive
// changes around them. A new one is tried with -only ID, and stays when a test kills it.
var tables = [][]mutant{sampling, training, judging, learning, caching, sealing, ingesting, computing}
