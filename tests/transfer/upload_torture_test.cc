// Goal: whatever happens to the collector and to connections, a bundle that was
// acknowledged is there, every digest matches, and nothing is left over.
// Method: property test with a printed seed. Clients upload bundles that share
// chunks through a proxy that cuts connections at random, while the collector
// is killed and started again; then the store is read byte by byte. The
// environment sets the size: CLEW_TORTURE_BUNDLES, CLEW_TORTURE_KILLS,
// CLEW_TORTURE_CLIENTS, and another seed: CLEW_TORTURE_SEED.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collector/catalogue/catalogue.h"
#include "collector/store/bundle_store.h"
#include "common/check.h"
#include "proto/bundle.pb.h"
#include "tests/collector/samples.h"
#include "tests/transfer/collector_process.h"
#include "tests/transfer/cutting_proxy.h"
#include "tests/transfer/token_line.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;
using collector::Files;
using collector::TempFolder;

constexpr uint64_t kUsualSeed = 20261127;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::stoull(text) : otherwise;
}

std::string RandomBytes(size_t size, std::mt19937_64& random) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = random();
    bytes.replace(i, std::min<size_t>(8, size - i),
                  reinterpret_cast<const char*>(&word),
                  std::min<size_t>(8, size - i));
  }
  return bytes;
}

std::string Manifest(uint64_t number) {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.add_command("torture");
  manifest.set_seed(number);
  manifest.mutable_failure()->set_kind(pb::Failure::KIND_SIGNAL);
  manifest.mutable_failure()->set_signal(6);
  return manifest.SerializeAsString();
}

// What all bundles share: an image of two chunks, so that several clients send
// the same chunk at once.
std::string SharedImage() {
  std::mt19937_64 random(1);
  return RandomBytes(kChunkBytes + 100'000, random);
}

Files BundleOf(uint64_t number, uint64_t seed, const std::string& shared) {
  std::mt19937_64 random(seed * 1'000'003 + number);
  const size_t size =
      number % 5 == 0
          ? std::uniform_int_distribution<size_t>(kChunkBytes,
                                                  2 * kChunkBytes)(random)
          : std::uniform_int_distribution<size_t>(1, 500'000)(random);
  Files files = {{"manifest.pb", Manifest(number)},
                 {"perf.data", RandomBytes(size, random)},
                 {"inputs.pb", ""}};
  if (number % 2 == 0) {
    files["images/c0ffee/libshared.so"] = shared;
  }
  return files;
}

struct Torture {
  uint64_t bundles = FromEnvironment("CLEW_TORTURE_BUNDLES", 30);
  uint64_t kills = FromEnvironment("CLEW_TORTURE_KILLS", 6);
  uint64_t clients = FromEnvironment("CLEW_TORTURE_CLIENTS", 16);
  uint64_t seed = FromEnvironment("CLEW_TORTURE_SEED", kUsualSeed);
  uint64_t connection_bytes = 3'000'000;  // mean

  TempFolder folder;
  std::atomic<uint64_t> next_bundle = 0;
  std::atomic<uint64_t> acknowledged = 0;
  std::atomic<uint64_t> over = 0;  // acknowledged or failed
  std::atomic<bool> killed_all = false;
  std::atomic<uint64_t> attempts = 0;
  std::atomic<uint64_t> bytes_sent = 0;
  std::mutex mutex;
  std::map<BundleId, std::string> hosts;  // of acknowledged bundles
  std::vector<std::string> failures;
};

// One client: takes the next bundle until there is none. The last one is sent
// after the last kill, so that there is something to send until then.
void Send(Torture& torture, uint64_t client, uint16_t port,
          const std::string& shared) {
  const std::string host = fmt::format("host{}", client);
  const std::string token_file = torture.folder / (host + ".token");
  std::ofstream(token_file) << "token-" << host << "\n";
  fs::permissions(token_file, fs::perms::owner_read);
  ClientOptions options;
  options.address = fmt::format("127.0.0.1:{}", port);
  options.insecure_loopback = true;
  options.token_file = token_file;
  options.attempts_max = 1000;
  options.pause_ms_first = 5;
  options.pause_ms_max = 200;
  const auto made = Client::Create(options);
  ASSERT_TRUE(made.has_value()) << made.error().message;
  for (uint64_t number = torture.next_bundle++; number < torture.bundles;
       number = torture.next_bundle++) {
    const std::string folder = torture.folder / fmt::format("b{}", number);
    collector::WriteFiles(folder, BundleOf(number, torture.seed, shared));
    if (number == torture.bundles - 1) {
      torture.killed_all.wait(false);
    }
    UploadStats stats;
    const auto sent = (*made)->Upload(folder, nullptr, &stats);
    fs::remove_all(folder);
    torture.attempts += stats.attempts;
    torture.bytes_sent += stats.bytes_sent;
    ++torture.over;
    const std::lock_guard lock(torture.mutex);
    if (sent) {
      torture.hosts[*sent] = host;
      ++torture.acknowledged;
    } else {
      torture.failures.push_back(
          fmt::format("bundle {}: {}", number, sent.error().message));
    }
  }
}

// Kills while the uploads go on: the k-th one not before its share of bundles
// is over.
void KillOften(Torture& torture, CollectorProcess& process) {
  std::mt19937_64 random(torture.seed);
  std::uniform_int_distribution<int> pause_ms(5, 150);
  uint64_t kills = 0;
  while (kills < torture.kills) {
    // So that each finds another part of the work.
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms(random)));
    if (torture.over * (torture.kills + 1) < kills * torture.bundles) {
      continue;
    }
    CLEW_CHECK(process.Lives(), "after kill {} the collector ended:\n{}", kills,
               process.log());
    process.Kill();
    ++kills;
    CLEW_CHECK(process.Start(), "no collector after kill {}", kills);
  }
  torture.killed_all = true;
  torture.killed_all.notify_all();
}

// What the stopped collector's folder holds, against what was acknowledged.
void CheckFolder(const Torture& torture, const std::string& data) {
  EXPECT_TRUE(fs::is_empty(data + "/incoming")) << "left behind";
  const uint64_t now_s = 0;
  auto store = collector::BundleStore::Open(
      PosixFileSystem(), collector::StoreOptions(data, &now_s));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  const collector::StoreReport report = (*store)->Check();
  EXPECT_THAT(report.faults, testing::IsEmpty());
  EXPECT_THAT(report.orphans, testing::IsEmpty());
  EXPECT_EQ(report.bundles, torture.bundles);
  auto catalogue = collector::Catalogue::Open(data + "/catalogue.sqlite");
  ASSERT_TRUE(catalogue.has_value()) << catalogue.error().message;
  for (const auto& [id, host] : torture.hosts) {
    EXPECT_TRUE((*store)->ReadList(id).has_value())
        << id.hex() << " was acknowledged and is not there";
    const auto row = (*catalogue)->Bundle(id);
    ASSERT_TRUE(row.has_value()) << row.error().message;
    const std::optional<collector::BundleRow>& found = *row;
    EXPECT_EQ(found ? found->host : "no row", host) << id.hex();
  }
  const auto counts = (*catalogue)->Counts();
  ASSERT_TRUE(counts.has_value());
  EXPECT_EQ(counts->bundles, torture.bundles) << "rows";
}

TEST(UploadTortureTest, WhatWasAcknowledgedIsThereAfterKillsAndCuts) {
  Torture torture;
  // Else the share of the last kill would be the last bundle, too.
  ASSERT_GT(2 * torture.bundles, torture.kills);
  fmt::print("CLEW_TORTURE_SEED={}\n", torture.seed);
  std::fflush(stdout);
  std::ofstream tokens(torture.folder / "tokens");
  for (uint64_t i = 0; i < torture.clients; ++i) {
    const std::string host = fmt::format("host{}", i);
    tokens << TokenLine(host, "token-" + host);
  }
  tokens.close();
  CollectorProcess process(
      torture.folder.path(),
      {"insecure_loopback = yes", "tokens = " + (torture.folder / "tokens"),
       "solvers = 0", "clew = /bin/false", "disk_free_bytes_min = 0",
       "threads_max = 64"});
  ASSERT_TRUE(process.Start());
  CuttingProxy proxy(process.port(), torture.connection_bytes, torture.seed);
  const std::string shared = SharedImage();
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> clients;
  clients.reserve(torture.clients);
  for (uint64_t i = 0; i < torture.clients; ++i) {
    clients.emplace_back([&, i] { Send(torture, i, proxy.port(), shared); });
  }
  KillOften(torture, process);
  for (std::thread& client : clients) {
    client.join();
  }
  ASSERT_TRUE(process.running());
  EXPECT_EQ(process.Stop(), 0) << process.log();
  fmt::print(
      "{} bundles from {} clients, {} kills, {} of {} connections cut, {} "
      "attempts, {} MB acknowledged, {:.1f} s\n",
      torture.acknowledged.load(), torture.clients, torture.kills, proxy.cuts(),
      proxy.connections(), torture.attempts.load(),
      torture.bytes_sent.load() / 1'000'000,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count());
  EXPECT_THAT(torture.failures, testing::IsEmpty());
  EXPECT_EQ(torture.hosts.size(), torture.bundles);
  EXPECT_GT(proxy.cuts(), 0u);
  CheckFolder(torture, process.data());
}

}  // namespace
}  // namespace clew::transfer
