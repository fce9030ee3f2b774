#include "tests/transfer/fleet.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "collector/service/auth.h"
#include "common/check.h"
#include "proto/bundle.pb.h"
#include "proto/collector.grpc.pb.h"
#include "tests/collector/samples.h"
#include "tests/support/wait_until.h"
#include "transfer/client.h"

namespace clew::transfer {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A byte so often; less than that would be idle.
constexpr milliseconds kTrickle{300};
constexpr milliseconds kAgain{50};

std::string HostName(uint64_t number) { return fmt::format("host-{}", number); }

std::string TokenFile(const std::string& folder, uint64_t number) {
  return fmt::format("{}/token-{}", folder, number);
}

collector::Files FilesOf(uint64_t number, uint64_t bytes) {
  pb::Manifest manifest;
  manifest.set_format_version(1);
  manifest.set_seed(number);
  std::mt19937_64 random(number);
  std::string trace(bytes, '\0');
  std::ranges::generate(trace, [&] { return static_cast<char>(random()); });
  return {{"manifest.pb", manifest.SerializeAsString()}, {"perf.data", trace}};
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A stream of a hostile host, again and again until it is destroyed.
class Trickler {
 public:
  Trickler(const std::string& address, const std::string& token_file,
           uint64_t number, std::atomic<uint64_t>& got)
      : address_(address),
        sample_(FilesOf(number, 1'000'000)),
        got_(got),
        token_(FirstLine(token_file)),
        thread_([this] { Run(); }) {}
  ~Trickler() {
    stop_ = true;
    thread_.join();
  }

 private:
  void Prepare(grpc::ClientContext& context) const {
    context.AddMetadata("clew-protocol", "1");
    context.AddMetadata("authorization", "Bearer " + token_);
  }
  bool Rest(milliseconds time) const {
    const auto end = Clock::now() + time;
    while (!stop_ && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(20));
    }
    return !stop_;
  }
  void Run() {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = pb::Collector::NewStub(grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), own));
    while (!stop_) {
      grpc::ClientContext context;
      Prepare(context);
      pb::BeginRequest request;
      const auto encoded = sample_.list.Encode();
      request.set_files(encoded.data(), encoded.size());
      pb::BeginReply reply;
      if (stub->Begin(&context, request, &reply).ok()) {
        Trickle(*stub);
      }
      (void)Rest(kAgain);
    }
  }
  void Trickle(pb::Collector::Stub& stub) {
    grpc::ClientContext context;
    Prepare(context);
    const auto stream = stub.Put(&context);
    const FileEntry& file = sample_.list.files().at(1);
    const auto chunk = file.chunks.at(0).bytes();
    const std::string& bytes = sample_.files.at(file.path);
    for (uint64_t sent = 0; !stop_; ++sent) {
      pb::PutPart part;
      part.set_chunk(chunk.data(), chunk.size());
      part.set_offset(sent);
      part.set_data(bytes.substr(sent, 1));
      if (!stream->Write(part)) {
        break;
      }
      got_ += sent == 1 ? 1 : 0;  // the first may be in flight to a refusal
      if (!Rest(kTrickle)) {
        break;
      }
    }
    context.TryCancel();
    (void)stream->Finish();
  }

  const std::string address_;
  const collector::Sample sample_;
  std::atomic<uint64_t>& got_;
  const std::string token_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last: uses all above
};

// What the honest hosts share while they send.
struct Work {
  Work(const CollectorProcess& used, const std::string& in,
       const FleetPlan& wanted)
      : collector(used), folder(in), plan(wanted) {}
  const CollectorProcess& collector;
  const std::string& folder;
  const FleetPlan& plan;
  std::atomic<uint64_t> next = 0;
  std::mutex mutex;  // for the outcome
  FleetOutcome outcome;
};

void SendOne(Work& work, uint64_t number) {
  const std::string bundle = fmt::format("{}/bundle-{}", work.folder, number);
  collector::WriteFiles(bundle, FilesOf(number, work.plan.bundle_bytes));
  ClientOptions options;
  options.address = work.collector.address();
  options.insecure_loopback = true;
  options.token_file = TokenFile(work.folder, number);
  options.attempts_max = work.plan.attempts_max;
  options.pause_ms_max = work.plan.pause_ms_max;
  const auto begin = Clock::now();
  const auto client = Client::Create(options);
  CLEW_CHECK(client.has_value(), "{}", client.error().message);
  UploadStats stats;
  const auto sent = (*client)->Upload(bundle, nullptr, &stats);
  const std::chrono::duration<double> taken = Clock::now() - begin;
  const std::lock_guard lock(work.mutex);
  work.outcome.attempts += stats.attempts;
  work.outcome.seconds.push_back(taken.count());
  if (!sent) {
    ++work.outcome.gave_up;
    work.outcome.why = sent.error().message;
  }
}

void SendAll(Work& work) {
  std::vector<std::thread> clients;
  clients.reserve(work.plan.clients);
  for (uint64_t i = 0; i < work.plan.clients; ++i) {
    clients.emplace_back([&work] {
      for (uint64_t number = work.next++; number < work.plan.hosts;
           number = work.next++) {
        SendOne(work, number);
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
}

}  // namespace

double FleetOutcome::Quantile(double part) const {
  const auto rank = static_cast<size_t>(
      std::ceil(part * static_cast<double>(seconds.size())));
  return seconds.at(std::max<size_t>(rank, 1) - 1);
}

std::vector<std::string> FleetConfig(const std::string& folder,
                                     const FleetPlan& plan) {
  std::ofstream lines(folder + "/tokens");
  for (uint64_t i = 0; i < plan.hosts + plan.hostile; ++i) {
    const auto made = collector::MakeToken(HostName(i));
    CLEW_CHECK(made.has_value(), "{}", made.error().message);
    lines << made->line << "\n";
    const std::string file = TokenFile(folder, i);
    std::ofstream(file) << made->token << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  }
  return {"insecure_loopback = yes",
          "tokens = " + folder + "/tokens",
          "solvers = 0",
          "clew = /bin/false",
          "disk_free_bytes_min = 0",
          "address_connections_max = 4096"};
}

FleetOutcome RunFleet(const CollectorProcess& collector,
                      const std::string& folder, const FleetPlan& plan) {
  std::atomic<uint64_t> trickled = 0;
  std::vector<std::unique_ptr<Trickler>> hostile;
  for (uint64_t i = 0; i < plan.hostile * plan.streams; ++i) {
    const uint64_t host = plan.hosts + i / plan.streams;
    hostile.push_back(std::make_unique<Trickler>(
        collector.address(), TokenFile(folder, host), host, trickled));
  }
  const uint64_t wanted = std::min(hostile.size(), plan.places);
  CLEW_CHECK(test::WaitUntil([&] { return trickled >= wanted; }),
             "{} of {} streams trickle", trickled.load(), wanted);
  Work work(collector, folder, plan);
  const auto begin = Clock::now();
  SendAll(work);
  work.outcome.seconds_all =
      std::chrono::duration<double>(Clock::now() - begin).count();
  hostile.clear();
  work.outcome.trickled = trickled;
  std::ranges::sort(work.outcome.seconds);
  return work.outcome;
}

}  // namespace clew::transfer
