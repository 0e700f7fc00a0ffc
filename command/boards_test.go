package command

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kdedup/kdedup/config"
	"github.com/kdedup/kdedup/internal/testkit"
	"github.com/kdedup/kdedup/internal/testkit/servers"
	"github.com/kdedup/kdedup/internal/testkit/skip"
	"github.com/kdedup/kdedup/process"
)

// monitor is a running Prometheus.
type monitor struct {
	t   *testing.T
	url string
}

// startPrometheus scrapes the processes every two seconds and evaluates the rules, until the test
// ends.
func startPrometheus(t *testing.T, processes ...*process.Process) monitor {
	t.Helper()
	program := testkit.Program(t, "prometheus", "prometheus")
	rules, err := filepath.Abs("../charts/kdedup/rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, p := range processes {
		targets = append(targets, strings.Trim(strings.TrimPrefix(p.URL(), "http:"), "/"))
	}
	directory := t.TempDir()
	file := filepath.Join(directory, "prometheus.yml")
	text := fmt.Sprintf(
		"global: {scrape_interval: 5s, evaluation_interval: 5s}\nrule_files: [%q]\n"+
			"scrape_configs: [{job_name: kdedup, static_configs: [{targets: [%s]}]}]\n", rules,
		strings.Join(targets, ", "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := freeAddress(t)
	command := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+directory,
		"--web.listen-address="+addr)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log := &testkit.Printed{}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		_ = command.Process.Kill() // it has nothing to keep
		_ = command.Wait()
		if t.Failed() {
			t.Logf("prometheus:\n%s", log)
		}
	})
	return monitor{t, "http://" + addr}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := unusedAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// call asks the API and puts its data into the value. Until Prometheus is up the error says so.
func (p monitor) call(path string, parameters url.Values, into any) error {
	answer, err := http.Get(p.url + path + "?" + parameters.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.NewDecoder(answer.Body).Decode(&text); err != nil {
		return err
	}
	if text.Status != "success" {
		return fmt.Errorf("%s: %s", text.Status, text.Error)
	}
	return nil
}

// ask returns the values of an instant query that are numbers.
func (p monitor) ask(query string) (values []float64, err error) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.call("/api/v1/query", url.Values{"query": {query}}, &data); err != nil {
		return nil, err
	}
	for _, series := range data.Result {
		value, err := strconv.ParseFloat(series.Value[1].(string), 64)
		if err != nil {
			return nil, err
		}
		if !math.IsNaN(value) {
			values = append(values, value)
		}
	}
	return values, nil
}

// boardQuery is one query of a panel, or of a variable.
type boardQuery struct{ place, expr string }

// asGrafana fills in the variables as Grafana does when all is selected.
var asGrafana = strings.NewReplacer("$topic", ".+", "$instance", ".+", "$client", ".+",
	"$__rate_interval", "30s", "$__range", "1m")

type boardPanel struct {
	Title   string
	Targets []struct{ Expr string }
	Panels  []boardPanel // of a row that is closed
}

// boardQueries lists what the boards ask.
func boardQueries(t *testing.T) (all []boardQuery) {
	t.Helper()
	files, err := filepath.Glob("../charts/kdedup/dashboards/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no boards: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Title      string
			Panels     []boardPanel
			Templating struct {
				List []struct{ Name, Definition string }
			}
		}
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, panel := range board.Panels {
			for _, p := range append(panel.Panels, panel) {
				for _, target := range p.Targets {
					all = append(all, boardQuery{board.Title + ", " + p.Title,
						asGrafana.Replace(target.Expr)})
				}
			}
		}
		for _, v := range board.Templating.List {
			if inner, isQuery := strings.CutPrefix(v.Definition, "label_values("); isQuery {
				metric, label, _ := strings.Cut(strings.TrimSuffix(inner, ")"), ", ")
				all = append(all, boardQuery{board.Title + ", variable " + v.Name,
					fmt.Sprintf("count by (%s) (%s{%s!=\"\"})", label, metric, label)})
			}
		}
	}
	return all
}

// Every panel shows something while kdedup works: on a real Prometheus, of running processes. One
// of them forwards to another cluster. The panels of Cassandra need one, and those of Redis and
// PostgreSQL too.
func TestNoPanelIsEmpty(t *testing.T) {
	if testing.Short() {
		t.Skip("a real Prometheus is not for -short")
	}
	brokers := demoKafka(t)
	processes := []*process.Process{runDemo(t, brokers, func(*config.Config) {})}
	processes = append(processes, runDemo(t, brokers, onFiles(t)),
		runDemo(t, brokers, onAnotherCluster(t)))
	cassandra := os.Getenv(testkit.CassandraEnv)
	if cassandra != "" || skip.Forbidden() {
		processes = append(processes,
			runDemo(t, brokers, onCassandra(testkit.Cassandra(t), testkit.Keyspace(t))))
	} else {
		t.Log(skip.NotTested + "the panels of Cassandra: run make test, which starts one")
	}
	_, err := servers.FindRedis()
	redis := err == nil || skip.Forbidden()
	if redis {
		processes = append(processes, runDemo(t, brokers, onRedis(servers.Redis(t))))
	} else {
		t.Logf(skip.NotTested+"the panels of Redis: %v", err)
	}
	postgres := os.Getenv(testkit.PostgresEnv)
	if postgres != "" || skip.Forbidden() {
		processes = append(processes,
			runDemo(t, brokers, onPostgres(testkit.Postgres(t), testkit.Schema(t))))
	} else {
		t.Log(skip.NotTested + "the panels of PostgreSQL: run make test, which starts one")
	}
	p := startPrometheus(t, processes...)
	p.showsAll(cassandra != "", redis, postgres != "")
	p.checkRules()
	for _, query := range runbookQueries(t) {
		if _, err := p.ask(query); err != nil {
			t.Errorf("the runbook asks %s: %v", query, err)
		}
	}
}

// Boards find their series where topics share them, too.
func TestNoPanelIsEmptyWhereTopicsShareSeries(t *testing.T) {
	if testing.Short() {
		t.Skip("a real Prometheus is not for -short")
	}
	brokers, files := demoKafka(t), onFiles(t)
	sharing := func(c *config.Config) { c.Metrics.PerTopic = config.PerTopicSummed }
	apart := onAnotherCluster(t)
	startPrometheus(t, runDemo(t, brokers, sharing), runDemo(t, brokers, func(c *config.Config) {
		files(c)
		sharing(c)
	}), runDemo(t, brokers, func(c *config.Config) {
		apart(c)
		sharing(c)
	})).showsAll(false, false, false)
}

var ofKeepers = regexp.MustCompile(`kdedup_claim_log_(kept_shards|keeper_requests|hedged)`)

// showsAll fails for each panel that is empty, but for those of stores that no process has.
func (p monitor) showsAll(cassandra, redis, postgres bool) {
	t := p.t
	t.Helper()
	empty := make(map[boardQuery]string)
	for _, q := range boardQueries(t) {
		if !strings.Contains(q.expr, "kdedup_api_") && // of kdedup serve, which none of these is
			!ofKeepers.MatchString(q.expr) && // which these do not share their log with
			(cassandra || !strings.Contains(q.expr, "kdedup_cassandra_")) &&
			(redis || !strings.Contains(q.expr, "kdedup_redis_")) &&
			(postgres || !strings.Contains(q.expr, "kdedup_postgres_")) {
			empty[q] = "not asked yet"
		}
	}
	deadline := time.Now().Add(4 * time.Minute)
	testkit.Eventually(t, 5*time.Minute, "the panels", func() bool {
		maps.DeleteFunc(empty, func(q boardQuery, _ string) bool { return p.shows(q, empty) })
		return len(empty) == 0 || time.Now().After(deadline)
	})
	for _, q := range slices.SortedFunc(maps.Keys(empty), func(a, b boardQuery) int {
		return strings.Compare(a.place, b.place)
	}) {
		t.Errorf("%s shows nothing (%s): %s", q.place, empty[q], q.expr)
	}
	if len(empty) > 0 {
		p.showTargets()
	}
}

// showTargets logs how the scrapes went.
func (p monitor) showTargets() {
	var data struct {
		ActiveTargets []struct{ ScrapeURL, Health, LastError string }
	}
	err := p.call("/api/v1/targets", nil, &data)
	p.t.Logf("targets: %+v, %v", data.ActiveTargets, err)
}

func onCassandra(host, keyspace string) func(*config.Config) {
	return func(c *config.Config) {
		c.Instance = "demo-cassandra"
		c.Store.Type, c.Store.Cassandra.Hosts, c.Store.Cassandra.Keyspace = config.StoreCassandra,
			[]string{host}, keyspace
		t := &c.Topics[0]
		t.Output, t.ConsumerGroup, t.ScopeGroup, t.FenceTopic = "orders.clean2", "orders-dedup2",
			"orders-dedup2", "orders-dedup2.fence"
		t.DuplicatesTopic, t.DeadLetterTopic = "orders.duplicates2", "orders.dlq2"
	}
}

func onRedis(address string) func(*config.Config) {
	return func(c *config.Config) {
		c.Instance = "demo-redis"
		c.Store.Type, c.Store.Redis.Addresses = config.StoreRedis, []string{address}
		t := &c.Topics[0]
		t.Output, t.ConsumerGroup, t.ScopeGroup, t.FenceTopic = "orders.clean4", "orders-dedup4",
			"orders-dedup4", "orders-dedup4.fence"
		t.DuplicatesTopic, t.DeadLetterTopic = "orders.duplicates4", "orders.dlq4"
	}
}

func onPostgres(host, schema string) func(*config.Config) {
	return func(c *config.Config) {
		c.Instance = "demo-postgres"
		c.Store.Type, c.Store.Postgres.Hosts, c.Store.Postgres.Schema = config.StorePostgres,
			[]string{host}, schema
		c.Store.Postgres.Database, c.Store.Postgres.Username = "postgres", "postgres"
		t := &c.Topics[0]
		t.Output, t.ConsumerGroup, t.ScopeGroup, t.FenceTopic = "orders.clean3", "orders-dedup3",
			"orders-dedup3", "orders-dedup3.fence"
		t.DuplicatesTopic, t.DeadLetterTopic = "orders.duplicates3", "orders.dlq3"
	}
}

func onFiles(t *testing.T) func(*config.Config) {
	path := t.TempDir()
	return func(c *config.Config) {
		c.Instance = "demo-embedded"
		c.Store.Type, c.Store.Embedded.Path = config.StoreEmbedded, path
		e := &c.Topics[0]
		e.Output, e.ConsumerGroup, e.ScopeGroup, e.FenceTopic = "orders.clean5", "orders-dedup5",
			"orders-dedup5", "orders-dedup5.fence"
		e.DuplicatesTopic, e.DeadLetterTopic = "orders.duplicates5", "orders.dlq5"
	}
}

func onAnotherCluster(t *testing.T) func(*config.Config) {
	_, output := testkit.FakeKafka(t)
	files := onFiles(t)
	return func(c *config.Config) {
		files(c)
		c.Instance, c.Kafka.Output.Brokers = "demo-apart", output
		e := &c.Topics[0]
		e.ConsumerGroup, e.ScopeGroup, e.FenceTopic = "orders-dedup6", "orders-dedup6",
			"orders-dedup6.fence"
	}
}

// shows reports whether a query has an answer, and notes why not.
func (p monitor) shows(q boardQuery, why map[boardQuery]string) bool {
	values, err := p.ask(q.expr)
	why[q] = "no series"
	if err != nil {
		why[q] = err.Error()
	}
	return len(values) > 0
}

// ruleGroup is what the API tells about a group of rules.
type ruleGroup struct {
	Rules []struct {
		Name, Health, LastError string
		Alerts                  []struct {
			State       string
			Annotations map[string]string
		}
	}
}

// pending reports whether the group was not evaluated yet.
func (g ruleGroup) pending() bool {
	return len(g.Rules) == 0 || g.Rules[len(g.Rules)-1].Health == "unknown"
}

// checkRules sees that every rule can be evaluated, and that none alerts while all is well.
func (p monitor) checkRules() {
	p.t.Helper()
	var data struct {
		Groups []ruleGroup
	}
	evaluated := func() bool {
		if err := p.call("/api/v1/rules", nil, &data); err != nil {
			p.t.Fatal(err)
		}
		return len(data.Groups) > 0 && !slices.ContainsFunc(data.Groups, ruleGroup.pending)
	}
	testkit.Eventually(p.t, time.Minute, "an evaluation of the rules", evaluated)
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				p.t.Errorf("rule %s: %s %s", rule.Name, rule.Health, rule.LastError)
			}
			for _, alert := range rule.Alerts {
				if alert.State != "firing" {
					continue // a condition that has just come, as at the start
				}
				p.t.Errorf("%s alerts while all is well: %s", rule.Name,
					alert.Annotations["summary"])
			}
		}
	}
}
