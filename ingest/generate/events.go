package generate

// An event is one of a temporal graph: a user meets an item.
type event struct {
	user, item int64 // node ids: items come after users
	home       int   // community that the user stays in at the time
	community  int   // of the item
	time       int64 // seconds from the start
	part       int   // of the split
}

// events makes a stream of them. A user has a home among the communities of items for a while, and
// moves on: who remembers the last items of a user knows more about the next one than its history
// as a whole says.
type events struct {
	g           *Source
	users, item *population
	r           *relation
	homes, key  uint64
	features    *features // their means are the means of communities of items
	noise       uint64    // key
}

const (
	eventSpan = 31 * 24 * 3600 // seconds, unless told
	stays     = 8              // homes of a user in that time
)

func newEvents(g *Source) *events {
	s := g.shape
	return &events{
		g: g, users: g.types[0], item: g.types[1], r: g.relations[0],
		homes: key(s.seed, forHomes, 0), key: key(s.seed, forEvents, 0),
		features: newFeatures(g.types[1], s.dim, s.signal, s.seed), noise: key(s.seed, forNoise, 1),
	}
}

// at makes event k. It is safe for concurrent use.
func (e *events) at(k int64) event {
	h := key(e.key, forEvents, uint64(k))
	_, user := e.anyone(e.users, unit(h))
	time := int64((float64(k) + unit(draw(h, 1))) * (e.g.shape.span / float64(e.r.edges)))
	ev := event{user: int64(user), time: time}
	move := draw(e.homes, uint64(user)) // when in a stay the user moves
	stay := uint64(float64(float64(time)*(stays/e.g.shape.span)) + unit(move))
	ev.home, _ = e.anyone(e.item, unit(draw(move, stay+1)))
	u, homophily := unit(draw(h, 2)), e.r.homophily
	var item uint32
	if u < homophily {
		ev.community = ev.home
		item = e.item.ids.id(e.item.first[ev.home] + place(e.r.in.at(u/homophily), e.item.size(ev.home)))
	} else {
		ev.community, item = e.anyone(e.item, (u-homophily)/(1-homophily))
	}
	ev.item = int64(e.users.count) + int64(item)
	at := k
	for ev.part = range e.g.shape.parts {
		if at -= e.g.shape.parts[ev.part]; at < 0 {
			break
		}
	}
	return ev
}

// anyone finds the node of a type at a quantile of all, and its community.
func (e *events) anyone(p *population, y float64) (community int, id uint32) {
	x := float64(y * float64(p.count))
	c := p.of(min(uint32(x), p.count-1))
	return c, p.ids.id(p.first[c] + place(e.r.out.at((x-float64(p.first[c]))/float64(p.size(c))), p.size(c)))
}

// row fills dst with the features of event k: noise around the mean of its item's community.
func (e *events) row(dst []float32, k int64) {
	c, dim := e.at(k).community, e.features.dim
	noise(dst, e.features.means[c*dim:(c+1)*dim], draw(e.noise, uint64(k)))
}
