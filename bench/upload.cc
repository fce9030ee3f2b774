// Uploads over loopback into the built clew-collector: throughput, and the
// collector's memory, which must not grow with what is sent.
//
//   bench_upload [GB] [CLIENTS] [FOLDER]
//
// The collector's data and the bundles are in a new folder below FOLDER
// (default: the temporary one), which is removed at the end.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/check.h"
#include "proto/bundle.pb.h"
#include "tests/transfer/collector_process.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kBundleBytes = uint64_t{256} << 20;
constexpr uint64_t kMega = 1'000'000;

// A bundle of kBundleBytes that no chunk of another one is in.
void WriteBundle(const std::string& folder, uint64_t number) {
  fs::create_directories(folder);
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.set_seed(number);
  std::ofstream(folder + "/manifest.pb") << manifest.SerializeAsString();
  std::ofstream data(folder + "/perf.data", std::ios::binary);
  std::mt19937_64 random(number);
  std::vector<uint64_t> block(1 << 17);
  for (uint64_t bytes = 0; bytes < kBundleBytes; bytes += block.size() * 8) {
    for (uint64_t& word : block) {
      word = random();
    }
    data.write(reinterpret_cast<const char*>(block.data()),
               static_cast<std::streamsize>(block.size() * 8));
  }
}

ClientOptions OptionsFor(const CollectorProcess& collector) {
  ClientOptions options;
  options.address = collector.address();
  options.insecure_loopback = true;
  return options;
}

struct Sent {
  double seconds = 0;
  uint64_t bytes = 0;
};

// `clients` at once, each one bundle after the other; every bundle is written
// before the clock runs.
Sent SendAll(const CollectorProcess& collector, const std::string& folder,
             uint64_t bundles, uint64_t clients) {
  Sent sent;
  std::atomic<uint64_t> bytes = 0;
  for (uint64_t done = 0; done < bundles; done += clients) {
    const uint64_t now = std::min(clients, bundles - done);
    for (uint64_t i = 0; i < now; ++i) {
      WriteBundle(fmt::format("{}/b{}", folder, i), done + i);
    }
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    threads.reserve(now);
    for (uint64_t i = 0; i < now; ++i) {
      threads.emplace_back([&, i] {
        const auto client = Client::Create(OptionsFor(collector));
        CLEW_CHECK(client.has_value(), "{}", client.error().message);
        UploadStats stats;
        const auto id = (*client)->Upload(fmt::format("{}/b{}", folder, i),
                                          nullptr, &stats);
        CLEW_CHECK(id.has_value(), "{}", id.error().message);
        bytes += stats.bytes_sent;
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    sent.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    fmt::print("{:>10} {:>10} {:>10.1f} {:>12.1f}\n", bytes / kMega, now,
               static_cast<double>(bytes) / 1e6 / sent.seconds,
               static_cast<double>(collector.PeakResidentBytes()) / 1e6);
    std::fflush(stdout);
  }
  sent.bytes = bytes;
  return sent;
}

int Main(int argc, char** argv) {
  uint64_t gigabytes = 1;
  uint64_t clients = 4;
  std::string base = fs::temp_directory_path();
  CLI::App app("uploads over loopback: throughput and the collector's memory");
  app.add_option("gb", gigabytes, "GiB to send")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("clients", clients, "clients at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("folder", base, "where bundles and the collector's data go")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const uint64_t total = gigabytes << 30;
  std::string folder = base + "/bench-upload.XXXXXX";
  CLEW_CHECK(mkdtemp(folder.data()) != nullptr, "cannot make {}", folder);
  {
    CollectorProcess collector(
        folder, {"insecure_loopback = yes", "solvers = 0", "clew = /bin/false",
                 "host_bytes_per_day = 1T", "host_bundles_max = 64",
                 "host_streams_max = 64", "store_bytes_max = 1T"});
    CLEW_CHECK(collector.Start(), "no collector");
    fmt::print("collector's memory before {:.1f} MB\n",
               static_cast<double>(collector.PeakResidentBytes()) / 1e6);
    fmt::print("{:>10} {:>10} {:>10} {:>12}\n", "MB sent", "clients", "MB/s",
               "peak RSS MB");
    const Sent sent = SendAll(collector, folder, total / kBundleBytes, clients);
    fmt::print("{} MB in {:.2f} s, digests of the client included\n",
               sent.bytes / kMega, sent.seconds);
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace clew::transfer

int main(int argc, char** argv) { return clew::transfer::Main(argc, argv); }
