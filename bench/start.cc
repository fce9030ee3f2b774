// The start of the built clew-collector on a large store: until it says that
// it is ready, how long pages take then, and when it has read its whole store.
//
//   bench_start [BUNDLES] [FOLDER]
//   bench_start [BUNDLES] --keep STORE
//
// A bundle has 22 files, of which 19 are images that all bundles share. The
// store is in a new folder below FOLDER (default: the temporary one), which is
// removed at the end, or in STORE, which stays and is used again as it is.

#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/store/stored_list.h"
#include "common/check.h"
#include "common/digest.h"
#include "common/text/signal_text.h"
#include "proto/bundle.pb.h"
#include "tests/collector/catalogue/catalogue_model.h"
#include "tests/collector/samples.h"
#include "tests/transfer/collector_process.h"

namespace clew::collector {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using transfer::CollectorProcess;

constexpr int kImages = 19;
constexpr uint64_t kBundlesOfGroup = 5;
constexpr uint64_t kHosts = 1000;
constexpr uint64_t kPrograms = 40;
constexpr uint64_t kVersions = 300;
constexpr int kLoads = 5;
constexpr std::chrono::minutes kReadLimit{10};

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Files FilesOf(uint64_t number) {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.set_seed(number);
  Files files = {{"manifest.pb", manifest.SerializeAsString()},
                 {"perf.data", fmt::format("trace {}", number)},
                 {"core.zst", fmt::format("core {}", number)}};
  for (int i = 0; i < kImages; ++i) {
    files[fmt::format("images/c0ffee{:02x}/lib{}.so", i, i)] =
        fmt::format("image {}", i);
  }
  return files;
}

std::string HostOf(uint64_t number) {
  return fmt::format("host-{:03}.example", number % kHosts);
}

// A build-id.
std::string VersionOf(uint64_t number) {
  return fmt::format("{:040x}", MixBits(number % kVersions));
}

void WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  CLEW_CHECK(file.good(), "cannot write {}", path);
}

// As BundleStore has it on disk, without its syncs.
class StoreWriter {
 public:
  explicit StoreWriter(const std::string& folder) : folder_(folder) {
    fs::create_directories(folder_ + "/bundles");
    for (unsigned i = 0; i < 256; ++i) {
      fs::create_directories(fmt::format("{}/chunks/{:02x}", folder_, i));
    }
  }

  BundleId Add(uint64_t number) {
    const Sample sample(FilesOf(number));
    for (const auto& [id, bytes] : sample.chunks) {
      const std::string name = id.hex();
      if (written_.insert(id).second) {
        WriteFile(
            fmt::format("{}/chunks/{}/{}", folder_, name.substr(0, 2), name),
            Bytes(bytes));
      }
    }
    const BundleId id = sample.list.id();
    WriteFile(fmt::format("{}/bundles/{}.pb", folder_, id.hex()),
              EncodeStored(sample.list,
                           {.host = HostOf(number), .received_at_s = 1}));
    return id;
  }

 private:
  const std::string folder_;
  std::set<ChunkId> written_;
};

void Fill(const std::string& data, uint64_t bundles) {
  StoreWriter writer(data);
  const auto catalogue = Catalogue::Open(data + "/catalogue.sqlite");
  CLEW_CHECK(catalogue.has_value(), "{}", catalogue.error().message);
  for (uint64_t i = 0; i < bundles; ++i) {
    NewBundle bundle = BundleOf(i);
    bundle.id = writer.Add(i);
    bundle.host = HostOf(i);
    bundle.unit = fmt::format("service-{}.service", i % kPrograms);
    bundle.failure = SignalText(i % 3 == 0 ? SIGABRT : SIGSEGV);
    CLEW_CHECK((*catalogue)->Add(bundle).has_value(), "not added");
    const uint64_t group = i % (bundles / kBundlesOfGroup + 1);
    CLEW_CHECK(
        (*catalogue)
            ->SetAnalysis(bundle.id,
                          {.signature = SignatureOf(group),
                           .title = fmt::format("SIGSEGV in F{}", group),
                           .backtraces = std::string(2000, 'b'),
                           .program = fmt::format("service-{}", i % kPrograms),
                           .version = VersionOf(i)})
            .has_value(),
        "not analysed");
  }
}

void FillOnce(const std::string& data, uint64_t bundles) {
  if (fs::exists(data)) {
    return;
  }
  const auto begin = Clock::now();
  Fill(data, bundles);
  fmt::print("{} bundles written in {:.0f} s\n", bundles, SecondsSince(begin));
  std::fflush(stdout);
}

// In milliseconds, the slowest of some loads.
double SlowestLoad(httplib::Client& client, const std::string& path) {
  double slowest_ms = 0;
  for (int i = 0; i < kLoads; ++i) {
    const auto begin = Clock::now();
    const auto page = client.Get(path);
    CLEW_CHECK(page && page->status == 200, "no page {}", path);
    slowest_ms = std::max(slowest_ms, SecondsSince(begin) * 1000);
  }
  return slowest_ms;
}

void PrintPages(uint16_t port, const char* when) {
  httplib::Client client("127.0.0.1", port);
  for (const char* path :
       {"/", "/?page=2", "/?q=F77", "/?q=host", "/?q=nowhere",
        "/?program=service-7", "/?failure=SIGABRT&host=host-007.example",
        "/?since=1970-01-02", "/?unit=service-7&until=2100-01-01&state=stored",
        "/bundles", "/bundles?host=host-007.example",
        "/bundles?failure=SIGABRT", "/hosts", "/metrics", "/healthz",
        "/api/groups.json"}) {
    fmt::print("{:<16} {:<47} {:>7.1f} ms\n", when, path,
               SlowestLoad(client, path));
    std::fflush(stdout);
  }
}

double WaitUntilRead(const CollectorProcess& collector,
                     Clock::time_point begin) {
  while (collector.log().find("event=opened ") == std::string::npos) {
    CLEW_CHECK(Clock::now() - begin < kReadLimit, "the store is never read");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return SecondsSince(begin);
}

void Measure(const std::string& folder, uint16_t web_port) {
  fs::remove(folder + "/log");  // of an earlier run
  CollectorProcess collector(folder, {});
  std::ofstream(collector.config_file())
      << "data = " << collector.data() << "\nlisten = " << collector.address()
      << "\nweb = 127.0.0.1:" << web_port
      << "\ninsecure_loopback = yes\nsolvers = 0\nclew = /bin/false\n"
         "store_bytes_max = 1T\nscrub_bytes_per_s = 0\n";
  const auto begin = Clock::now();
  CLEW_CHECK(collector.Start(), "no collector");
  fmt::print("{:<61} {:>10.2f} s\n", "start to ready", SecondsSince(begin));
  PrintPages(web_port, "after the start");
  fmt::print("{:<61} {:>10.2f} s\n", "start to all read",
             WaitUntilRead(collector, begin));
  PrintPages(web_port, "all read");
  fmt::print("{:<61} {:>10.1f} MB\n", "peak memory",
             static_cast<double>(collector.PeakResidentBytes()) / 1e6);
  collector.Kill();
}

int Main(int argc, char** argv) {
  uint64_t bundles = 100'000;
  std::string base = fs::temp_directory_path();
  CLI::App app("the collector's start on a large store");
  app.add_option("bundles", bundles, "in the store")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("folder", base, "where the store goes")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  std::string kept;
  app.add_option("--keep", kept, "a store that stays");
  CLI11_PARSE(app, argc, argv);
  std::string folder = base + "/bench-start.XXXXXX";
  if (!kept.empty()) {
    folder = kept;
    fs::create_directories(folder);
  } else {
    CLEW_CHECK(mkdtemp(folder.data()) != nullptr, "cannot make {}", folder);
  }
  FillOnce(folder + "/data", bundles);
  Measure(folder, transfer::FreePort());
  if (kept.empty()) {
    fs::remove_all(folder);
  }
  return 0;
}

}  // namespace
}  // namespace clew::collector

int main(int argc, char** argv) { return clew::collector::Main(argc, argv); }
