// A management server for tests: go-control-plane, which serves what a file says and writes down who accepts it.
//
// The file holds {"version": "1", "resources": [...]}, each resource a RateLimitConfig as JSON. It is read again when it
// changes. Standard output has one JSON object for each event: listening, serving, subscribed, accepted, refused.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	config "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protojson"
)

const poll = 20 * time.Millisecond

type event struct {
	Event   string `json:"event"`
	Version string `json:"version,omitempty"`
	Message string `json:"message,omitempty"`
	Node    string `json:"node,omitempty"`
}

type snapshot struct {
	Version   string            `json:"version"`
	Resources []json.RawMessage `json:"resources"`
}

func say(it event) {
	line, err := json.Marshal(it)
	if err != nil {
		log.Fatal(err)
	}
	// One write: lines of streams that run at the same time do not mix.
	os.Stdout.Write(append(line, '\n'))
}

func main() {
	address := flag.String("address", "127.0.0.1:0", "where to listen")
	node := flag.String("node", "default", "whom to serve")
	file := flag.String("snapshot", "", "what to serve")
	cert := flag.String("cert", "", "a certificate, for TLS")
	key := flag.String("key", "", "its private key")
	clients := flag.String("client-ca", "", "the authority that signs clients' certificates, for mutual TLS")
	flag.Parse()

	options := []grpc.ServerOption{}
	if *cert != "" {
		secure, err := secured(*cert, *key, *clients)
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	first, err := os.ReadFile(*file)
	if err == nil {
		err = serve(ctx, snapshots, *node, *file, string(first))
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		log.Fatal(err)
	}
	go follow(ctx, snapshots, *node, *file, string(first))

	servers := grpc.NewServer(options...)
	callbacks := server.CallbackFuncs{StreamRequestFunc: heard}
	discovery.RegisterAggregatedDiscoveryServiceServer(servers, server.NewServer(ctx, snapshots, callbacks))
	say(event{Event: "listening"})
	log.Fatal(servers.Serve(listener))
}

func heard(_ int64, request *discovery.DiscoveryRequest) error {
	switch {
	case request.GetErrorDetail() != nil:
		say(event{Event: "refused", Version: request.GetVersionInfo(), Message: request.GetErrorDetail().GetMessage()})
	case request.GetResponseNonce() != "":
		say(event{Event: "accepted", Version: request.GetVersionInfo()})
	default:
		say(event{Event: "subscribed", Version: request.GetVersionInfo(), Node: request.GetNode().GetId()})
	}
	return nil
}

// follow serves the file whenever it differs from what was served.
func follow(ctx context.Context, snapshots cache.SnapshotCache, node, file, served string) {
	for {
		time.Sleep(poll)
		text, err := os.ReadFile(file)
		if err != nil || string(text) == served {
			continue
		}
		served = string(text)
		if err := serve(ctx, snapshots, node, file, served); err != nil {
			log.Fatal(err)
		}
	}
}

func serve(ctx context.Context, snapshots cache.SnapshotCache, node, file, text string) error {
	var wanted snapshot
	if err := json.Unmarshal([]byte(text), &wanted); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	resources := []types.Resource{}
	for _, raw := range wanted.Resources {
		message := &config.RateLimitConfig{}
		if err := protojson.Unmarshal(raw, message); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		resources = append(resources, message)
	}
	made, err := cache.NewSnapshot(wanted.Version, map[resource.Type][]types.Resource{resource.RateLimitConfigType: resources})
	if err != nil {
		return err
	}
	if err := snapshots.SetSnapshot(ctx, node, made); err != nil {
		return err
	}
	say(event{Event: "serving", Version: wanted.Version})
	return nil
}

func secured(cert, key, clients string) (*tls.Config, error) {
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{Certificates: []tls.Certificate{own}}
	if clients != "" {
		authority, err := os.ReadFile(clients)
		if err != nil {
			return nil, err
		}
		secure.ClientCAs = x509.NewCertPool()
		if !secure.ClientCAs.AppendCertsFromPEM(authority) {
			return nil, errors.New("no certificate in " + clients)
		}
		secure.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return secure, nil
}
