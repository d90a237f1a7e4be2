package headgate_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	service "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	gostats "github.com/lyft/gostats"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/service_cmd/runner"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/test/common"
	mockstats "github.com/envoyproxy/ratelimit/test/mocks/stats"
)

// Folders with configuration files, and a page with examples.
var (
	folders = []string{"test/config", "test/integration/runtime", "examples/ratelimit"}
	example = regexp.MustCompile("(?s)```yaml\n(domain:.*?)```")
)

// TestFiles compares both services for every file: whether it is valid, and the limit of each descriptor.
func TestFiles(t *testing.T) {
	root := os.Getenv("HEADGATE_FILES")
	for name, text := range files(t, root) {
		t.Run(name, func(t *testing.T) {
			theirs, yaml, err := load(name, text)
			folder := t.TempDir()
			path := filepath.Join(folder, "file.yaml")
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			said, refused := exec.Command(os.Getenv("HEADGATE_BINARY"), "import", "envoy", path).CombinedOutput()
			switch {
			case (err != nil) != (refused != nil):
				t.Errorf("envoyproxy/ratelimit says %v, Headgate:\n%s", err, said)
			case err == nil:
				compare(t, folder, theirs, yaml)
			}
			common.Note("file", !t.Failed())
		})
	}
}

// Returns the files by name.
func files(t *testing.T, root string) map[string]string {
	all := map[string]string{}
	for _, folder := range folders {
		err := filepath.Walk(filepath.Join(root, folder), func(path string, _ os.FileInfo, err error) error {
			if err != nil || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			all[strings.TrimPrefix(path, root+"/")] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for place, found := range example.FindAllSubmatch(page, -1) {
		all[fmt.Sprintf("README.md example %02d", place+1)] = string(found[1])
	}
	return all
}

// Loads a file with envoyproxy/ratelimit, which panics if the file is invalid.
func load(name, text string) (limits config.RateLimitConfig, yaml *config.YamlRoot, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	yaml = config.ConfigFileContentToYaml(name, text)
	stats := mockstats.NewMockStatManager(gostats.NewStore(gostats.NewNullSink(), false))
	files := []config.RateLimitConfigToLoad{{Name: name, ConfigYaml: yaml}}
	return config.NewRateLimitConfigImpl(files, stats, false), yaml, nil
}

// Compares the limits of all descriptors in the file, and of some that are not.
func compare(t *testing.T, folder string, theirs config.RateLimitConfig, yaml *config.YamlRoot) {
	s := settings.Settings{RuntimePath: folder, GrpcPort: common.FreePort()}
	headgate := runner.NewRunner(s)
	defer headgate.Stop()
	client := client(t, s.GrpcPort)
	for _, descriptor := range paths(yaml.Descriptors, nil) {
		descriptor.HitsAddend = wrapperspb.UInt64(0)
		request := service.RateLimitRequest{Domain: yaml.Domain, Descriptors: []*descriptors.RateLimitDescriptor{descriptor}}
		response, err := client.ShouldRateLimit(context.Background(), &request)
		if err != nil {
			t.Fatal(err)
		}
		limit := theirs.GetLimit(context.Background(), yaml.Domain, descriptor)
		if expected, got := wanted(limit), answered(response.Statuses[0]); expected != got {
			t.Errorf("%v: envoyproxy/ratelimit has %s, Headgate %s", descriptor.Entries, expected, got)
		}
	}
}

func client(t *testing.T, port int) service.RateLimitServiceClient {
	conn, err := grpc.NewClient(fmt.Sprintf("127.0.0.1:%d", port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return service.NewRateLimitServiceClient(conn)
}

func wanted(limit *config.RateLimit) string {
	switch {
	case limit == nil:
		return "no limit"
	case limit.Unlimited:
		return "unlimited"
	default:
		return fmt.Sprintf("%d per %s, name %q", limit.Limit.RequestsPerUnit, limit.Limit.Unit, limit.Limit.Name)
	}
}

func answered(status *service.RateLimitResponse_DescriptorStatus) string {
	switch limit := status.CurrentLimit; {
	case limit == nil && status.LimitRemaining == 0:
		return "no limit"
	case limit == nil:
		return "unlimited"
	default:
		return fmt.Sprintf("%d per %s, name %q", limit.RequestsPerUnit, limit.Unit, limit.Name)
	}
}

// Returns descriptors of every depth: each key with the values in the file, with values that match
// trailing wildcards, and with an unknown one.
func paths(list []config.YamlDescriptor, above []*descriptors.RateLimitDescriptor_Entry) []*descriptors.RateLimitDescriptor {
	var all []*descriptors.RateLimitDescriptor
	for _, entry := range list {
		values := map[string]bool{entry.Value: true, "unknown": true, "": true}
		if prefix, ok := strings.CutSuffix(entry.Value, "*"); ok {
			values[prefix], values[prefix+"x"] = true, true
		}
		sorted := []string{}
		for value := range values {
			sorted = append(sorted, value)
		}
		sort.Strings(sorted)
		for _, value := range sorted {
			path := append(append([]*descriptors.RateLimitDescriptor_Entry{}, above...),
				&descriptors.RateLimitDescriptor_Entry{Key: entry.Key, Value: value})
			deeper := append(append([]*descriptors.RateLimitDescriptor_Entry{}, path...),
				&descriptors.RateLimitDescriptor_Entry{Key: "beyond", Value: "x"})
			all = append(all, &descriptors.RateLimitDescriptor{Entries: path}, &descriptors.RateLimitDescriptor{Entries: deeper})
			all = append(all, paths(entry.Descriptors, path)...)
		}
	}
	return all
}
