package generate

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/gnnstore/gnnstore/ingest"
)

// Kind churn is tables of customers, who leave with a known probability. See the package comment.

const churn = "churn"

var (
	churnCountries  = [...]string{"AT", "BE", "CH", "DE", "ES", "FR", "IT", "NL"}
	churnPlans      = [...]string{"basic", "plus", "pro"}
	churnCategories = [...]string{"audio", "books", "games", "garden", "kitchen", "office", "sports", "toys"}
	churnFees       = [...]float64{9.9, 19.9, 39.9}
	// churnToday is the day of the tables: all dates lie before it.
	churnToday = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
)

// Terms of the logit of the probability: see the package comment.
const (
	churnBasic, churnPro = 0.9, -0.6 // of the plans, beside plus
	churnTicket          = 0.35      // of a support ticket
	churnTenure          = -0.5      // of ln(1 + years as a customer)
	churnYoung           = 0.5       // of an age below 30
	churnCountry         = 1.0       // from the first country to the last, in even steps
	churnPurchases       = -1.1      // of ln(1 + purchases)
	churnFriends         = 1.2       // of the mean own part of the users that the user knows
	churnReturns         = 10        // of the mean share of returns of the products bought
	churnOwnMean         = 0.5       // about the mean of the own part
	churnReturnsMean     = 0.12      // about the mean share of returns
	churnOffset          = 0.6
)

// churnUser has the columns of a user.
type churnUser struct {
	age, country, plan int
	tenure             int // days since the user signed up
	tickets            int
	fee                float64
}

// churnTables is the layout of kind churn.
type churnTables struct {
	*rawWriter
	users, products  uint32
	bought, known    float64 // means of purchases and acquaintances of a user
	forUser, forItem uint64  // keys of draws
	forBuys, forKnow uint64
	forLabel         uint64
}

func newChurn(w *rawWriter) *churnTables {
	s := w.g.shape
	t := &churnTables{rawWriter: w, users: uint32(s.types[0].nodes), products: uint32(s.types[1].nodes)}
	t.bought, t.known = float64(s.relations[0].edges)/float64(t.users), float64(s.relations[1].edges)/float64(t.users)
	t.forUser, t.forItem = key(s.seed, forChurn, 0), key(s.seed, forChurn, 1)
	t.forBuys, t.forKnow, t.forLabel = key(s.seed, forChurn, 2), key(s.seed, forChurn, 3), key(s.seed, forChurn, 4)
	return t
}

// bytes bounds the files: a row of each takes at most so many bytes, and the numbers of rows vary
// around those expected.
func (t *churnTables) bytes() int64 {
	edges := t.g.shape.edges + t.g.shape.edges/4 + 4096
	return smallFiles + 112*int64(t.users) + 48*int64(t.products) + 64*edges
}

// draws gives numbers that depend on a key and their order alone.
type draws struct{ key, k uint64 }

// drawsOf returns the draws of the which-th thing of a key.
func drawsOf(key, which uint64) draws { return draws{key: draw(key, which)} }

func (d *draws) unit() float64 {
	d.k++
	return unit(draw(d.key, d.k))
}

// normal is a standard normal draw, by Box and Muller.
func (d *draws) normal() float64 {
	u, v := 1-d.unit(), d.unit()
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

// count draws a number around a mean: log-normal, so that few users have most.
func (d *draws) count(mean, spread float64) int {
	x := mean * math.Exp(spread*d.normal()-spread*spread/2)
	return int(min(x, 50*mean) + d.unit()) // rounded up as often as it takes to keep the mean
}

func (t *churnTables) user(u uint32) churnUser {
	d := drawsOf(t.forUser, uint64(u))
	x := churnUser{age: 18 + int(62*d.unit()*d.unit()+20*d.unit()), country: int(d.unit() * float64(len(churnCountries)))}
	switch p := d.unit(); {
	case p < 0.5:
	case p < 0.8:
		x.plan = 1
	default:
		x.plan = 2
	}
	x.tenure = int(min(-800*math.Log(1-d.unit()), 3650))
	x.tickets = int(min(-1.5*math.Log(1-d.unit()), 12))
	x.fee = churnFees[x.plan] * (0.9 + 0.2*d.unit())
	return x
}

// own is the part of the logit that the user's own columns give.
func (x *churnUser) own() float64 {
	sum := churnTicket*float64(x.tickets) + churnTenure*math.Log1p(float64(x.tenure/30)/12)
	switch x.plan {
	case 0:
		sum += churnBasic
	case 2:
		sum += churnPro
	}
	if x.age < 30 {
		sum += churnYoung
	}
	return sum + churnCountry*(float64(x.country)/float64(len(churnCountries)-1)-0.5)
}

// product returns the category, the price and the share of returns of a product.
func (t *churnTables) product(i uint32) (category int, price, returns float64) {
	d := drawsOf(t.forItem, uint64(i))
	category = int(i) % len(churnCategories)
	price = 5 + 45*d.unit()*d.unit()*4
	returns = 0.03 + 0.18*float64(category)/float64(len(churnCategories)-1)*(0.5+d.unit())
	return category, price, returns
}

// purchases visits the products that user u bought, in order. Six of ten are of the user's
// favourite category.
func (t *churnTables) purchases(u uint32, visit func(product uint32, amount float64, day int)) {
	d := drawsOf(t.forBuys, uint64(u))
	favourite := uint32(d.unit() * float64(len(churnCategories)))
	tenure := float64(t.user(u).tenure)
	for range d.count(t.bought, 1) {
		x := d.unit()
		i := uint32(x * x * float64(t.products)) // few products sell most
		if d.unit() < 0.6 {
			if j := i - i%uint32(len(churnCategories)) + favourite; j < t.products {
				i = j
			}
		}
		_, price, _ := t.product(i)
		visit(i, price*(1+math.Floor(3*d.unit()*d.unit())), int(tenure*d.unit()))
	}
}

// friends visits the users that user u knows. Seven of ten live in u's country. The same one may
// come twice.
func (t *churnTables) friends(u uint32, visit func(v uint32)) {
	d := drawsOf(t.forKnow, uint64(u))
	country := t.user(u).country
	for range d.count(t.known, 0.8) {
		home := d.unit() < 0.7
		for range 64 {
			v := uint32(d.unit() * float64(t.users))
			if v != u && (!home || t.user(v).country == country) {
				visit(v)
				break
			}
		}
	}
}

// probability returns the probability that user u leaves.
func (t *churnTables) probability(u uint32) float64 {
	x := t.user(u)
	bought, known, returns, owns := 0, 0, 0.0, 0.0
	t.purchases(u, func(i uint32, _ float64, _ int) {
		_, _, share := t.product(i)
		bought, returns = bought+1, returns+share
	})
	t.friends(u, func(v uint32) {
		friend := t.user(v)
		known, owns = known+1, owns+friend.own()
	})
	return churnProbability(x.own(), bought, returns, known, owns)
}

// churnProbability is the probability that a user leaves. It depends on the user's own part, the
// number of products bought and the sum of their shares of returns, and the number of users known
// and the sum of their own parts.
func churnProbability(own float64, bought int, returns float64, known int, owns float64) float64 {
	logit := churnOffset + own - churnOwnMean + churnPurchases*math.Log1p(float64(bought))
	if bought > 0 {
		logit += churnReturns * (returns/float64(bought) - churnReturnsMean)
	}
	if known > 0 {
		logit += churnFriends * (owns/float64(known) - churnOwnMean)
	}
	return 1 / (1 + math.Exp(-logit))
}

// part of the split of user u.
func (t *churnTables) part(u uint32) string {
	at := int64(t.g.parts.rank(u))
	for p, n := range t.g.shape.parts {
		if at < n {
			return ingest.Part(p).String()
		}
		at -= n
	}
	return ""
}

func (t *churnTables) write(ctx context.Context) error {
	if err := t.text("schema.yaml", t.schema()); err != nil {
		return err
	}
	users, day := int64(t.users), func(back int) string { return churnToday.AddDate(0, 0, -1-back).Format(time.DateOnly) }
	money := func(b []byte, x float64) []byte { return strconv.AppendFloat(b, x, 'f', 2, 64) }
	tables := []struct {
		file, title string
		rows        int64
		line        func(b []byte, i uint32) []byte // the lines of the i-th row
	}{
		{"products.csv", "product,category,price,returns", int64(t.products), func(b []byte, i uint32) []byte {
			category, price, returns := t.product(i)
			b = fmt.Appendf(b, "p%d,%s,", i, churnCategories[category])
			return append(strconv.AppendFloat(append(money(b, price), ','), returns, 'f', 4, 64), '\n')
		}},
		{"buys.csv", "user,product,amount,bought_on", users, func(b []byte, u uint32) []byte {
			t.purchases(u, func(i uint32, amount float64, back int) {
				b = money(fmt.Appendf(b, "u%d,p%d,", u, i), amount)
				b = append(append(append(b, ','), day(back)...), '\n')
			})
			return b
		}},
		{"knows.csv", "user,knows", users, func(b []byte, u uint32) []byte {
			t.friends(u, func(v uint32) { b = fmt.Appendf(b, "u%d,u%d\n", u, v) })
			return b
		}},
		{"users.csv", t.userTitle(), users, func(b []byte, u uint32) []byte {
			x := t.user(u)
			b = fmt.Appendf(b, "u%d,%d,%s,%s,%s,%d,%d,", u, x.age, churnCountries[x.country], churnPlans[x.plan], day(x.tenure), x.tenure/30, x.tickets)
			b = money(b, x.fee)
			left, d := "no", drawsOf(t.forLabel, uint64(u))
			if d.unit() < t.probability(u) {
				left = "yes"
			}
			if t.g.shape.options.Leak {
				closed := 0
				if left == "yes" {
					closed = 1
				}
				b = fmt.Appendf(b, ",%d", closed)
			}
			return fmt.Appendf(b, ",%s,%s\n", left, t.part(u))
		}},
		{"truth.csv", "user,probability", users, func(b []byte, u uint32) []byte {
			return fmt.Appendf(b, "u%d,%.6f\n", u, t.probability(u))
		}},
	}
	t.edges = 0
	for _, table := range tables {
		edges := table.file == "buys.csv" || table.file == "knows.csv"
		t.begin("write "+table.file, table.rows, "rows")
		if err := t.file(table.file, func(f io.Writer) error {
			if _, err := io.WriteString(f, table.title+"\n"); err != nil {
				return err
			}
			n, err := t.lines(ctx, f, table.rows, table.line)
			if edges {
				t.edges += n
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// lines writes the lines of all rows, made on all processors, and counts them.
func (t *churnTables) lines(ctx context.Context, f io.Writer, rows int64, line func(b []byte, i uint32) []byte) (n int64, err error) {
	const each = 1 << 10
	err = ordered(ctx, chunks(rows, each), func() *[]byte { return new([]byte) },
		func(chunk int64, b *[]byte) {
			*b = (*b)[:0]
			for i := chunk * each; i < min(rows, (chunk+1)*each); i++ {
				*b = line(*b, uint32(i))
			}
		},
		func(chunk int64, b *[]byte) error {
			t.add(int(min(each, rows-chunk*each)))
			n += int64(bytes.Count(*b, []byte("\n")))
			_, err := f.Write(*b)
			return err
		})
	return n, err
}

func (t *churnTables) userTitle() string {
	leak := ""
	if t.g.shape.options.Leak {
		leak = ",closed"
	}
	return "user,age,country,plan,signed_up,tenure_months,tickets,monthly_fee" + leak + ",churned,part"
}

// schema returns the schema for ingest table.
func (t *churnTables) schema() string {
	leak := ""
	if t.g.shape.options.Leak {
		leak = ", closed"
	}
	return `# Made by gnnstore generate. truth.csv has the probability that each user leaves;
# it is for measuring predictions, so no entry here reads it.
# ` + t.g.schema.Identity + `
name: churn
reverse: yes
nodes:
  - type: user
    files: users.csv
    id: user
    features: [age, country, plan, tenure_months, tickets, monthly_fee` + leak + `]
    categorical: [country, plan]
    counts: all
    sums: [buys.weight]
    label: churned
    split: part
  - type: product
    files: products.csv
    id: product
    features: [category, price, returns]
    categorical: [category]
    counts: all
edges:
  - type: user:buys:product
    files: buys.csv
    src: user
    dst: product
    weight: amount
  - type: user:knows:user
    files: knows.csv
    src: user
    dst: knows
`
}
