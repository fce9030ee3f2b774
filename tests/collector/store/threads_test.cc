// Goal: many clients at once, with broken uploads, wrong bytes, removals,
// expiry and power cuts: every bundle listed is whole, and what a client was
// told last about its bundle holds.
// Method: property; each round continues on what the disk kept of the last one.
// The seed is printed; CLEW_SEED is another one.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include "common/digest.h"
#include "tests/collector/samples.h"
#include "tests/support/power_cut_files.h"

namespace clew::collector {
namespace {

constexpr int kClients = 6;
constexpr int kRounds = 100;
constexpr int kStepsPerRound = 30;

constexpr uint64_t kUsualSeed = 20261126;

uint64_t Seed() {
  const char* given = std::getenv("CLEW_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : kUsualSeed;
}

class Client {
 public:
  // Two clients have the same bundle, all share chunks.
  Client(int number, uint64_t seed)
      : sample_(SmallSample(fmt::format("trace {}", number / 2),
                            fmt::format("code {}", number % 3))),
        random_(seed) {}

  void Step(BundleStore& store) {
    switch (random_.Below(8)) {
      case 0:
        if (may_remove_) {
          (void)store.Remove(sample_.list.id());  // another may be first
        }
        break;
      case 1:
        (void)store.Expire();  // fails when the power is cut
        break;
      case 2:
        SendWrong(store);
        break;
      case 3:
        BreakOff(store);
        break;
      default:
        Send(store);
        break;
    }
  }

  const Sample& sample() const { return sample_; }
  bool told_there() const { return told_there_; }
  void AllowRemoval(bool allowed) {
    may_remove_ = allowed;
    told_there_ = told_there_ && !allowed;
  }

 private:
  void Send(BundleStore& store) {
    if (SendBundle(store, sample_)) {
      told_there_ = !may_remove_;
    }
  }
  // Bytes that are not those of the name: refused, and in nobody's way.
  void SendWrong(BundleStore& store) {
    const ChunkRef chunk = sample_.list.Chunks().front();
    auto upload = store.chunks().Begin(chunk);
    ASSERT_TRUE(upload.has_value());
    const std::string wrong(chunk.size_bytes, '?');
    if (upload->Put(0, Bytes(wrong))) {
      EXPECT_FALSE(upload->Finish().has_value());
    }
  }
  void BreakOff(BundleStore& store) {
    const auto chunks = sample_.list.Chunks();
    auto upload = store.chunks().Begin(chunks[random_.Below(chunks.size())]);
    ASSERT_TRUE(upload.has_value());
    (void)upload->Put(0, Bytes(sample_.chunks.at(upload->chunk().id)).first(1));
  }

  const Sample sample_;
  Random random_;
  bool may_remove_ = false;
  bool told_there_ = false;
};

void RunAll(BundleStore& store, std::vector<Client>& clients) {
  std::vector<std::thread> threads;
  threads.reserve(clients.size());
  for (Client& client : clients) {
    threads.emplace_back([&] {
      for (int i = 0; i < kStepsPerRound; ++i) {
        client.Step(store);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

void ExpectToldHolds(BundleStore& store, const std::vector<Client>& clients) {
  std::map<BundleId, const Sample*> samples;
  std::set<BundleId> listed;
  for (const StoredBundle& bundle : store.List()) {
    listed.insert(bundle.id);
  }
  for (const Client& client : clients) {
    samples[client.sample().list.id()] = &client.sample();
    if (client.told_there()) {
      EXPECT_TRUE(listed.contains(client.sample().list.id()));
    }
  }
  const StoreReport report = store.Check();
  EXPECT_TRUE(report.faults.empty()) << report.faults.front();
  EXPECT_EQ(report.bundles, listed.size());
  for (const BundleId& id : listed) {
    const TempFolder out;
    const Status made = store.Materialise(id, out / "b");
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(ReadFiles(out / "b"), samples.at(id)->files);
  }
}

class StoreThreadsTest : public testing::Test {
 protected:
  StoreThreadsTest() {
    printf("CLEW_SEED=%lu\n", static_cast<unsigned long>(seed_));
    clients_.reserve(kClients);
    for (int i = 0; i < kClients; ++i) {
      clients_.emplace_back(i, random_.Next());
    }
  }
  // Of the bundles of client `first` and those behind it alone.
  void AllowRemovalFrom(size_t first) {
    for (size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].AllowRemoval(i >= first);
    }
  }

  const uint64_t seed_ = Seed();
  const testing::ScopedTrace trace_{__FILE__, __LINE__, seed_};
  Random random_{seed_};
  std::atomic<uint64_t> now_s_ = 0;
  std::vector<Client> clients_;
};

TEST_F(StoreThreadsTest, WhatClientsWereToldHoldsThroughCutsAndRepeats) {
  auto disk = std::make_unique<TempFolder>();
  int cuts = 0;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure();
       ++round) {
    const std::string root = *disk / "disk";
    if (round == 0) {
      WriteFiles(root, {{"x", ""}});
    }
    // The first two clients' bundle is never removed on even rounds.
    AllowRemovalFrom(round % 2 == 0 ? 2 : 0);
    PowerCutFiles files(root);
    auto options = StoreOptions(root + "/data", nullptr);
    options.now_s = [&] { return now_s_ += 10000; };
    {
      auto store = BundleStore::Open(files, options);
      ASSERT_TRUE(store.has_value()) << store.error().message;
      ExpectToldHolds(**store, clients_);
      files.FailAfter(static_cast<int>(random_.Below(400)) + 1);
      RunAll(**store, clients_);
    }
    cuts += files.failing() ? 1 : 0;
    auto after = std::make_unique<TempFolder>();
    files.AfterCut(*after / "disk",
                   [&](const std::string&, unsigned alternatives) {
                     return static_cast<unsigned>(random_.Below(alternatives));
                   });
    disk = std::move(after);
  }
  printf("%d rounds, %d of them cut\n", kRounds, cuts);
}

// The model of the disk has a lock that orders operations; this run has none,
// so that ThreadSanitizer sees the store's own. What all leave in the end is
// nothing: no file, no byte in the budget.
TEST_F(StoreThreadsTest, OnTheRealFileSystemNothingIsLostOrLeft) {
  AllowRemovalFrom(2);
  const TempFolder folder;
  auto options = StoreOptions(folder / "data", nullptr);
  options.now_s = [&] { return now_s_ += 1000; };
  for (int round = 0; round < 10; ++round) {
    auto store = BundleStore::Open(PosixFileSystem(), options);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    ExpectToldHolds(**store, clients_);
    RunAll(**store, clients_);
    ExpectToldHolds(**store, clients_);
  }
  auto store = BundleStore::Open(PosixFileSystem(), options);
  ASSERT_TRUE(store.has_value()) << store.error().message;
  for (const StoredBundle& bundle : (*store)->List()) {
    ASSERT_TRUE((*store)->Remove(bundle.id).has_value());
  }
  now_s_ += ChunkStore::kKeepDay_s;
  ASSERT_TRUE((*store)->Expire().has_value());
  EXPECT_EQ((*store)->used_bytes(), 0u);
  EXPECT_EQ(ReadFiles(folder / "data").size(), 1u) << "the lock alone";
}

}  // namespace
}  // namespace clew::collector
