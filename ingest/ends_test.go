package ingest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// TestEdgeEnds finds the ends of edges by the names in a header, and only if these are sure.
func TestEdgeEnds(t *testing.T) {
	for header, want := range map[string][3]int{
		"src,dst,w":                {0, 1, 1},
		"when,ToNodeId,FromNodeId": {2, 1, 1},
		"txId1,txId2":              {0, 1, 1},
		"SOURCE_SUBREDDIT,TARGET_SUBREDDIT,POST_ID": {0, 1, 1},
		"time,src_ip,src_port,dst_ip,dst_port":      {1, 3, 1},
		"sender_account,receiver_account,amount":    {0, 1, 1},
		"source,target,source_name,target_name":     {0, 1, 1}, // the plain names first
		"src,dst,u,v":                               {0, 1, 2},
		"source_a,target_a,source_b,target_b":       {0, 1, 2},
		"start_time,end_time,a,b":                   {0, 0, 0},
		"src_type,dst_type,a,b":                     {0, 0, 0},
		"x1,x2":                                     {0, 0, 0},
		"source_city,target_town":                   {0, 0, 0},
		"unit,vnit":                                 {0, 0, 0}, // u and v are too short to have an end
	} {
		src, dst, pairs := ingest.EdgeEnds(strings.Split(header, ","))
		require.Equal(t, want[2], pairs, header)
		if pairs == 1 {
			require.Equal(t, [2]int{want[0], want[1]}, [2]int{src, dst}, header)
		}
	}
}
