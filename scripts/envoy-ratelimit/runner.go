// Package runner starts Headgate in place of envoyproxy/ratelimit. It replaces the package of this name,
// so that the tests need no change.
package runner

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/test/common"
)

// Longer than any start takes, even on a busy machine.
const startTimeout = time.Minute

// Runner is a Headgate with these settings.
type Runner struct {
	process *exec.Cmd
	folder  string
	url     string
	// Closed when the process has ended.
	ended chan struct{}
}

// NewRunner starts Headgate and returns when it responds.
func NewRunner(s settings.Settings) Runner {
	waitForMinute()
	folder, err := os.MkdirTemp("", "headgate-envoy-ratelimit-")
	check(err)
	port := common.FreePort()
	process := exec.Command(os.Getenv("HEADGATE_BINARY"), "serve")
	process.Env = environment(s, port, folder)
	process.Dir = folder
	log, err := os.Create(filepath.Join(folder, "log"))
	check(err)
	defer log.Close()
	process.Stdout, process.Stderr = log, log
		// It must not outlive killed tests.
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(process.Start())
	r := Runner{process, folder, fmt.Sprintf("http://127.0.0.1:%d", port), make(chan struct{})}
	go func() {
		process.Wait()
		close(r.ended)
	}()
	deadline := time.After(startTimeout)
	for !r.isReady() {
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-r.ended:
		case <-deadline:
		}
		said, _ := os.ReadFile(log.Name())
		panic(fmt.Sprintf("Headgate does not start:\n%s", said))
	}
	return r
}

// Run returns when Headgate ends, which is already running.
func (r *Runner) Run() {
	<-r.ended
}

// Stop ends Headgate and removes its files.
func (r *Runner) Stop() {
	r.process.Process.Kill()
	<-r.ended
	os.RemoveAll(r.folder)
}

// GetStatsStore returns Headgate's metrics as statistics.
func (r *Runner) GetStatsStore() Store {
	return Store{r.url + "/metrics"}
}

func (r *Runner) isReady() bool {
	response, err := http.Get(r.url + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Returns Headgate's configuration for these settings.
func environment(s settings.Settings, port int, folder string) []string {
	denied := "all"
	if s.StopCacheKeyIncrementWhenOverlimit {
		denied = "none"
	}
	keys := map[string]string{
		"server.port":                   fmt.Sprint(port),
		"server.grpc_port":              fmt.Sprint(s.GrpcPort),
		"server.data_dir":               filepath.Join(folder, "data"),
		"envoy.enabled":                 "true",
		"envoy.reload_interval_seconds": "1",
		"envoy.denied_consumes":         denied,
		"redis.timeout_ms":              "30000",
	}
	if s.ConfigType == "GRPC_XDS_SOTW" {
		keys["envoy.xds.url"] = "http://" + s.ConfigGrpcXdsServerUrl
		keys["envoy.xds.node_id"] = s.ConfigGrpcXdsNodeId
	} else {
		files, err := filepath.Abs(filepath.Join(s.RuntimePath, s.RuntimeSubdirectory, s.RuntimeAppDirectory))
		check(err)
		keys["envoy.config_dir"] = files
	}
	if address, ok := common.RedisAddress(s.RedisUrl); ok && s.BackendType == "redis" {
		keys["redis.url"] = "redis://" + address
		if s.RedisAuth != "" {
			keys["redis.url"] = "redis://:" + s.RedisAuth + "@" + address
		}
		keys["redis.key_prefix"] = s.CacheKeyPrefix
	}
	variables := []string{}
	for key, value := range keys {
		if value != "" {
			name := strings.ToUpper(strings.ReplaceAll(key, ".", "__"))
			variables = append(variables, "HEADGATE__"+name+"="+value)
		}
	}
	return variables
}

// Waits for the next minute near the end of one: the tests count per minute and must not span two.
func waitForMinute() {
	const needed = 12 * time.Second
	now := time.Now()
	if left := now.Truncate(time.Minute).Add(time.Minute).Sub(now); left < needed {
		time.Sleep(left)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
