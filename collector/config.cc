#include "collector/config.h"

#include "common/text/config_file.h"

namespace clew::collector {
namespace {

constexpr uint64_t kBytesMax = uint64_t{1} << 50;

Status ReadNetwork(ConfigFile& file, CollectorConfig* config) {
  CLEW_RETURN_IF_ERROR(file.Text("", "data", &config->data));
  CLEW_RETURN_IF_ERROR(file.Text("", "listen", &config->listen));
  CLEW_RETURN_IF_ERROR(file.Text("", "certificate", &config->certificate));
  CLEW_RETURN_IF_ERROR(file.Text("", "key", &config->key));
  CLEW_RETURN_IF_ERROR(file.Text("", "client_ca", &config->client_ca));
  CLEW_RETURN_IF_ERROR(file.Text("", "tokens", &config->tokens));
  CLEW_RETURN_IF_ERROR(file.Text("", "denied", &config->denied));
  CLEW_RETURN_IF_ERROR(file.Words("", "readers", &config->readers));
  CLEW_RETURN_IF_ERROR(file.Words("", "engineers", &config->engineers));
  CLEW_RETURN_IF_ERROR(
      file.Flag("", "insecure_loopback", &config->insecure_loopback));
  CLEW_RETURN_IF_ERROR(file.Text("", "web", &config->web));
  CLEW_RETURN_IF_ERROR(file.Words("", "web_names", &config->web_names));
  CLEW_RETURN_IF_ERROR(file.Text("", "address", &config->address));
  return file.Text("", "web_url", &config->web_url);
}

Status ReadWebhook(ConfigFile& file, CollectorConfig* config) {
  CLEW_RETURN_IF_ERROR(file.Text("", "webhook", &config->webhook));
  CLEW_RETURN_IF_ERROR(
      file.Text("", "webhook_secret", &config->webhook_secret));
  CLEW_RETURN_IF_ERROR(file.Text("", "webhook_ca", &config->webhook_ca));
  CLEW_RETURN_IF_ERROR(
      file.Text("", "webhook_program", &config->webhook_program));
  return file.Number("", "webhook_tries", 1, 100, &config->webhook_tries);
}

Status ReadLimits(ConfigFile& file, CollectorConfig* config) {
  const auto bytes = [&](const char* key, uint64_t min, uint64_t* value) {
    return file.Bytes("", key, min, kBytesMax, value);
  };
  const auto count = [&](const char* key, uint64_t min, uint64_t max,
                         uint64_t* value) {
    return file.Number("", key, min, max, value);
  };
  const auto seconds = [&](const char* key, uint64_t max, uint64_t* value) {
    return file.Seconds("", key, 1, max, value);
  };
  constexpr uint64_t kMega = uint64_t{1} << 20;
  constexpr uint64_t kYear = 366 * 24 * 60 * 60;
  CLEW_RETURN_IF_ERROR(bytes("store_bytes_max", 1, &config->store_bytes_max));
  CLEW_RETURN_IF_ERROR(
      bytes("disk_free_bytes_min", 0, &config->disk_free_bytes_min));
  CLEW_RETURN_IF_ERROR(
      bytes("host_bytes_per_day", 1, &config->host_bytes_per_day));
  CLEW_RETURN_IF_ERROR(bytes("bundle_bytes_max", 1, &config->bundle_bytes_max));
  CLEW_RETURN_IF_ERROR(
      count("host_bundles_max", 1, 1024, &config->host_bundles_max));
  CLEW_RETURN_IF_ERROR(
      count("host_streams_max", 1, 64, &config->host_streams_max));
  CLEW_RETURN_IF_ERROR(count("threads_max", 8, 1024, &config->threads_max));
  CLEW_RETURN_IF_ERROR(
      count("connections_max", 16, 65536, &config->connections_max));
  CLEW_RETURN_IF_ERROR(count("address_connections_max", 1, 65536,
                             &config->address_connections_max));
  CLEW_RETURN_IF_ERROR(
      bytes("transfer_bytes_per_s_min", 0, &config->transfer_bytes_per_s_min));
  CLEW_RETURN_IF_ERROR(
      bytes("memory_bytes_max", 16 * kMega, &config->memory_bytes_max));
  CLEW_RETURN_IF_ERROR(seconds("idle_time_max", kYear, &config->idle_s_max));
  CLEW_RETURN_IF_ERROR(
      seconds("chunk_keep_time", kYear, &config->chunk_keep_s));
  CLEW_RETURN_IF_ERROR(
      bytes("scrub_bytes_per_s", 0, &config->scrub_bytes_per_s));
  CLEW_RETURN_IF_ERROR(seconds("scrub_period", kYear, &config->scrub_period_s));
  CLEW_RETURN_IF_ERROR(
      file.Seconds("", "retention_time", 0, 100 * kYear, &config->retention_s));
  return bytes("retention_bytes", 0, &config->retention_bytes);
}

Status ReadJobs(ConfigFile& file, CollectorConfig* config) {
  CLEW_RETURN_IF_ERROR(file.Text("", "clew", &config->clew));
  CLEW_RETURN_IF_ERROR(file.Number("", "analysers", 1, 64, &config->analysers));
  CLEW_RETURN_IF_ERROR(file.Number("", "solvers", 0, 64, &config->solvers));
  CLEW_RETURN_IF_ERROR(
      file.Seconds("", "solve_time_max", 1, 86400, &config->solve_s_max));
  CLEW_RETURN_IF_ERROR(
      file.Seconds("", "analysis_time_max", 1, 86400, &config->analysis_s_max));
  return file.Bytes("", "solve_memory_bytes", uint64_t{64} << 20, kBytesMax,
                    &config->solve_memory_bytes);
}

}  // namespace

const char* const kConfigHelp =
    R"(Keys of the configuration file (key = value), with their defaults:
  data = /var/lib/clew-collector  the store
  listen = 127.0.0.1:7790         where clients connect
  certificate =                   PEM, who the collector is; with
  key =                           its key. Read again when they change
  client_ca =                     PEM, whose signature on clients' certificates
                                  counts; the host is a certificate's first DNS
                                  name, or its common name
  tokens =                        file of lines HOST SHA256-OF-TOKEN, as
                                  'clew-collector token HOST' makes them
  denied =                        file of certificates that count no more, a line
                                  each: SHA-256 fingerprint, as 'openssl x509
                                  -noout -fingerprint -sha256' prints it
  readers =                       hosts that see all bundles, "*" for all;
                                  others see their own
  engineers =                     hosts that see all bundles and may delete them
                                  ('clew delete') and have them read again
  insecure_loopback = no          yes: without TLS, on a loopback address only
  web = 127.0.0.1:7791            the web page, /metrics, /healthz; no login, so
                                  only a loopback address; put a proxy before
                                  it. Empty: none
  web_names =                     names by which browsers ask for the page
  address =                       HOST:PORT for the command lines on the page
  web_url =                       https://clew.example.com, where people reach
                                  the page; for links in notifications
  webhook =                       http or https; new and reopened groups are
                                  posted there. Empty: nowhere
  webhook_secret =                file with the key of their signatures, which
                                  others may not read. Read again on SIGHUP
  webhook_ca =                    PEM, who vouches for the receiver; empty: the
                                  system's authorities
  webhook_program = /usr/lib/clew/clew-webhook
  webhook_tries = 12              of one notification, with pauses from 10 s to
                                  1 h in between
  store_bytes_max = 100G          of chunks and lists
  disk_free_bytes_min = 1G        that stay free on the disk
  host_bytes_per_day = 10G        of one host, by the day in UTC
  bundle_bytes_max = 8G
  host_bundles_max = 8            begun and not committed, of one host
  host_streams_max = 4            transfers at once, of one host
  threads_max = 128               calls at once: half of them transfers, and a
                                  quarter of each half for engineers alone
  connections_max = 4096          at once; the unit's LimitNOFILE must be above
  address_connections_max = 256   of one address; behind NAT that is all hosts
  memory_bytes_max = 64M          of the network's buffers
  idle_time_max = 60              a transfer that stands still so long is ended,
  transfer_bytes_per_s_min = 1K   and one that is slower than this over that time
  chunk_keep_time = 1d            of chunks that no bundle needs
  scrub_bytes_per_s = 8M          read from the store in the background, to find
                                  what the disk lost; 0: nothing
  scrub_period = 7d               from the begin of one walk through the store to
                                  the next
  retention_time = 0              bundles older than this go, the last of their
                                  group last; 0: none goes for its age
  retention_bytes = 0             above this the oldest go; 0: nine tenths of
                                  store_bytes_max
  clew = /usr/bin/clew            the program that analyses and solves
  analysers = 1                   bundles whose backtraces are made at once
  solvers = 1                     at once; 0: none
  solve_time_max = 300            of one bundle
  analysis_time_max = 60
  solve_memory_bytes = 4G         of one child process
)";

Result<CollectorConfig> ReadCollectorConfig(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, ConfigFile::Read(path));
  CollectorConfig config;
  CLEW_RETURN_IF_ERROR(ReadNetwork(file, &config));
  CLEW_RETURN_IF_ERROR(ReadWebhook(file, &config));
  CLEW_RETURN_IF_ERROR(ReadLimits(file, &config));
  CLEW_RETURN_IF_ERROR(ReadJobs(file, &config));
  CLEW_RETURN_IF_ERROR(file.Finish());
  return config;
}

}  // namespace clew::collector
