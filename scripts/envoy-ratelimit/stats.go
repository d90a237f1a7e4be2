package runner

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
)

// Store reads the metrics of a running Headgate.
type Store struct {
	url string
}

// Stat is a metric.
type Stat struct {
	url    string
	metric string
		// Text that its lines contain.
	labels []string
}

const descriptors = "headgate_envoy_descriptors_total{"

// Flush does nothing: metrics are read on demand.
func (s Store) Flush() {}

// NewCounter returns the counter of this name.
func (s Store) NewCounter(name string) Stat {
	if name == "ratelimit.service.config_load_success" {
		return Stat{s.url, "headgate_envoy_config_loads_total{", []string{`outcome="loaded"`}}
	}
	name, ok := strings.CutPrefix(name, "ratelimit.service.rate_limit.")
	parts := strings.Split(name, ".")
	if !ok || len(parts) < 3 {
		return Stat{}
	}
	domain, rule, kind := parts[0], strings.Join(parts[1:len(parts)-1], "."), parts[len(parts)-1]
	labels := []string{`domain="` + domain + `"`, `rule="` + rule + `"`}
	switch kind {
	case "total_hits":
	case "over_limit", "near_limit", "within_limit", "shadow_mode":
		labels = append(labels, `outcome="`+kind+`"`)
	default:
		return Stat{}
	}
	return Stat{s.url, descriptors, labels}
}

// NewCounterWithTags returns the counter of this name; tags are for statsd only.
func (s Store) NewCounterWithTags(name string, tags map[string]string) Stat {
	return s.NewCounter(name)
}

// NewGauge returns the gauge of this name.
func (s Store) NewGauge(name string) Stat {
	return s.NewCounter(name)
}

// Value sums up the metric's lines. Metrics that Headgate does not have, such as of a local cache, are 0.
func (s Stat) Value() uint64 {
	if s.metric == "" {
		return 0
	}
	response, err := http.Get(s.url)
	check(err)
	defer response.Body.Close()
	sum := uint64(0)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if line := lines.Text(); s.matches(line) {
			value, err := strconv.ParseUint(line[strings.LastIndexByte(line, ' ')+1:], 10, 64)
			check(err)
			sum += value
		}
	}
	return sum
}

func (s Stat) matches(line string) bool {
	if !strings.HasPrefix(line, s.metric) {
		return false
	}
	for _, label := range s.labels {
		if !strings.Contains(line, label) {
			return false
		}
	}
	return true
}
