// Strangers' calls, in any order and with any bytes, against the handlers of
// the collector's service: whatever comes, the store stays sound and within its
// budget, catalogue and store agree, and another host's upload goes through.
//
// An input is a program: one byte says which call, the next ones its arguments.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/check.h"
#include "proto/collector.pb.h"
#include "tests/collector/service/service_fixture.h"

namespace clew::collector {
namespace {

constexpr size_t kStepsMax = 64;
constexpr uint64_t kBudgetBytes = 40'000'000;

// Takes what it is asked for off the front; zeros at the end.
class Input {
 public:
  explicit Input(std::span<const uint8_t> bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    const uint8_t byte = rest_.empty() ? uint8_t{0} : rest_.front();
    rest_ = rest_.subspan(std::min<size_t>(1, rest_.size()));
    return byte;
  }
  uint64_t Word() {
    uint64_t word = 0;
    for (int i = 0; i < 4; ++i) {
      word = word << 8 | Byte();
    }
    return word;
  }
  // Up to 255 bytes, their number first.
  std::string Bytes() {
    const size_t size = std::min<size_t>(Byte(), rest_.size());
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::span<const uint8_t> rest_;
};

const std::vector<Sample>& Samples() {
  static const auto* samples = new std::vector<Sample>{
      ServiceSample("one", "image"), ServiceSample("two", "image"),
      ServiceSample(std::string(5'000'000, 'x'), std::string(300'000, 'i'))};
  return *samples;
}

// A message with some of its bytes changed.
std::string Mutated(std::string bytes, Input& input) {
  for (int changes = input.Byte() % 4; changes > 0 && !bytes.empty();
       --changes) {
    bytes[input.Word() % bytes.size()] ^= static_cast<char>(input.Byte());
  }
  return bytes;
}

void CheckError(const Error& error) {
  CLEW_CHECK(
      !error.message.empty() && error.message.find('\n') == std::string::npos,
      "a message of no or two lines: {:?}", error.message);
}

// A stranger with a host's name, and what it does.
class Stranger {
 public:
  Stranger(ServiceFixture& fixture, Input& input)
      : fixture_(fixture), input_(input) {}

  void Step();

 private:
  template <class Message>
  Message Mutate(const Message& message) {
    Message mutated;
    (void)mutated.ParseFromString(  // what it could make of it counts
        Mutated(message.SerializeAsString(), input_));
    return mutated;
  }
  const Sample& AnySample() {
    return Samples()[input_.Byte() % Samples().size()];
  }
  template <class Reply>
  void Look(const Result<Reply>& reply) {
    if (!reply) {
      CheckError(reply.error());
    }
  }

  void Begin();
  void Put();
  void Commit();
  void Get();
  void List();
  void Groups();
  void Hosts();
  void Restart();

  ServiceFixture& fixture_;
  Input& input_;
  const Caller caller_{.host = "stranger", .reads_all = false};
  std::unique_ptr<Service::PutSession> session_;
};

void Stranger::Begin() {
  pb::BeginRequest request = BeginOf(AnySample().list);
  request.set_files(Mutated(request.files(), input_));
  Look(fixture_.service().Begin(caller_, request));
}

void Stranger::Put() {
  if (session_ == nullptr) {
    session_ =
        std::make_unique<Service::PutSession>(fixture_.service(), caller_);
  }
  const Sample& sample = AnySample();
  const auto chunks = sample.list.Chunks();
  const ChunkRef& chunk = chunks[input_.Byte() % chunks.size()];
  const std::string& bytes = sample.chunks.at(chunk.id);
  const uint64_t offset = input_.Word() % (bytes.size() + 1);
  const uint8_t how = input_.Byte();
  pb::PutPart part = PartOf(chunk, bytes, how % 2 == 0 ? 0 : offset,
                            how % 3 == 0 ? 1 << 20 : input_.Word());
  if (how >= 128) {
    part = Mutate(part);
  }
  const auto put = session_->Put(part);
  Look(put);
  if (!put) {
    session_.reset();  // as the network's side does
  }
}

void Stranger::Commit() {
  pb::CommitRequest request;
  const auto id = AnySample().list.id().bytes();
  request.set_bundle(
      std::string(reinterpret_cast<const char*>(id.data()), id.size()));
  Look(fixture_.service().Commit(caller_, Mutate(request)));
}

void Stranger::Get() {
  const std::string id = AnySample().list.id().hex();
  const uint8_t how = input_.Byte();
  const auto files = Download(fixture_.service(), caller_,
                              how < 128 ? id.substr(0, how) : input_.Bytes(),
                              input_.Byte() % 8);
  Look(files);
}

void Stranger::List() {
  pb::ListRequest request;
  request.set_offset(input_.Word());
  request.set_limit(input_.Byte());
  request.set_host(input_.Bytes());
  Look(fixture_.service().List(caller_, Mutate(request)));
}

// As a reader, or an engineer whose client sends what it likes.
void Stranger::Groups() {
  const Caller engineer{.host = "ann", .reads_all = true, .engineer = true};
  const Caller& caller = input_.Byte() % 2 == 0 ? engineer : caller_;
  const Analysis found = AnalysisByKind("signal 6 (SIGABRT)", "./server");
  const auto bundle = fixture_.catalogue().TakeForAnalysis();
  CLEW_CHECK(bundle.has_value(), "nothing can be taken");
  CLEW_CHECK(!*bundle || fixture_.catalogue().SetAnalysis(**bundle, found),
             "not analysed");
  pb::ListGroupsRequest list;
  list.set_text(input_.Bytes());
  list.set_version(input_.Bytes());
  list.set_failure(input_.Bytes());
  list.set_since_s(static_cast<int64_t>(input_.Word()));
  Look(fixture_.service().ListGroups(caller, Mutate(list)));
  pb::ChangeGroupRequest change;
  change.set_id(found.signature.substr(0, input_.Byte()));
  change.set_change(
      static_cast<pb::ChangeGroupRequest::Change>(input_.Byte() % 4));
  change.set_version(input_.Bytes());
  change.set_note(input_.Bytes());
  change = Mutate(change);
  Look(fixture_.service().ChangeGroup(caller, change));
  Look(fixture_.service().ChangeGroup(caller, change));
  pb::GetGroupRequest get;
  get.set_id(change.id());
  Look(fixture_.service().GetGroup(caller, get));
}

// What a host says of itself, a reader sees.
void Stranger::Hosts() {
  pb::ReportRequest report;
  (void)report.ParseFromString(input_.Bytes());  // what it could make of it
  Look(fixture_.service().Report(caller_, report));
  pb::ListHostsRequest list;
  (void)list.ParseFromString(input_.Bytes());
  Look(fixture_.service().ListHosts({.host = "desk", .reads_all = true}, list));
}

void Stranger::Restart() {
  session_.reset();
  fixture_.Open();
}

void Stranger::Step() {
  switch (input_.Byte() % 12) {
    case 0:
      return Begin();
    case 1:
    case 2:
      return Put();
    case 3:
      return Commit();
    case 4:
      return Get();
    case 5:
      return List();
    case 6:
      return session_.reset();
    case 7: {
      pb::HelloRequest request;
      (void)request.ParseFromString(input_.Bytes());
      return Look(fixture_.service().Hello(caller_, request));
    }
    case 8:
      fixture_.steady_s += input_.Word() % 2000;
      CLEW_CHECK(fixture_.service().Housekeeping().has_value(),
                 "housekeeping failed");
      return;
    case 9:
      return Restart();
    case 10:
      return Groups();
    default:
      return Hosts();
  }
}

void CheckSound(ServiceFixture& fixture) {
  const Status sent =
      Upload(fixture.service(), {.host = "good", .reads_all = false},
             ServiceSample("good", "good image"));
  CLEW_CHECK(sent.has_value(), "a good upload fails: {}",
             sent ? "" : sent.error().message);
  const StoreReport report = fixture.store().Check();
  CLEW_CHECK(report.faults.empty(), "{}",
             report.faults.empty() ? "" : report.faults[0]);
  CLEW_CHECK(fixture.store().used_bytes() <= kBudgetBytes, "{} bytes used",
             fixture.store().used_bytes());
  const auto counts = fixture.catalogue().Counts();
  CLEW_CHECK(
      counts.has_value() && counts->bundles == fixture.store().List().size(),
      "catalogue and store differ");
}

}  // namespace
}  // namespace clew::collector

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using clew::collector::Input;
  using clew::collector::ServiceFixture;
  ServiceFixture fixture;
  fixture.budget_bytes = clew::collector::kBudgetBytes;
  fixture.options.clients.chunks_in_flight_max = 2;
  fixture.Open();
  const auto hosts = clew::collector::HostTable::Open(fixture.folder() +
                                                      "/data/catalogue.sqlite");
  CLEW_CHECK(hosts.has_value(), "no table of hosts");
  fixture.options.hosts = hosts->get();
  fixture.Open();
  Input input(std::span(data, size));
  {
    clew::collector::Stranger stranger(fixture, input);
    for (size_t i = 0; i < clew::collector::kStepsMax && !input.empty(); ++i) {
      stranger.Step();
    }
  }
  clew::collector::CheckSound(fixture);
  return 0;
}
