// Package ogb reads the node-property graphs of the Open Graph Benchmark in their csv.gz layout: a folder with raw/ and
// split/, as a download unpacks. Start at [Open]; [Lookup] has what the folder does not say.
//
//	raw/num-node-list.csv.gz, num-edge-list.csv.gz   one number each
//	raw/edge.csv.gz                                  source,destination
//	raw/node-feat.csv.gz                             optional; a row a node
//	raw/node-label.csv.gz                            optional; a column a task
//	split/<scheme>/{train,valid,test}.csv.gz         a node a line
//
// Edges come as the files have them. Where upstream adds the reverse of each (Info.AddReverse), that is the caller's to do.
//
// Several columns of labels are a multi-label task, zeros and ones. All other files are named in Schema.Skipped. The
// binary layout (raw/data.npz), the heterogeneous one, and splits that are Python pickles are refused by name.
package ogb
