// Package graph trains networks for graphs: on minibatches of nodes, links or edges, each with the
// neighbours that a sampler draws around it. The packages beside it do the work; here are the loop
// that calls them, and what ties them together.
//
// Call [Run] to train, and [OpenNetwork] for the trained network: to measure it, and to predict
// classes, numbers, embeddings and scores with it. Start reading at loop.go.
package graph
