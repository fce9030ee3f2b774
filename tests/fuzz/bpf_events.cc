// The ring of inputs as a broken or hostile kernel side might fill it: cut into
// events by a length byte each, checked and put together. Nothing but errors
// and losses may come of it, and no memory beyond the limit.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/check.h"
#include "recorder/bpf/call_assembler.h"
#include "recorder/bpf/event_parser.h"

namespace {

using clew::Status;
namespace bpf = clew::recorder::bpf;

constexpr uint64_t kCallBytesMax = 1000;

class CheckingSink final : public bpf::InputSink {
 public:
  Status OnCall(const bpf::InputCall& call) override {
    uint64_t bytes = 0;
    for (const bpf::MemoryPiece& piece : call.writes) {
      bytes += piece.bytes.size();
    }
    CLEW_CHECK(bytes <= kCallBytesMax + CLEW_RAW_PIECE_SMALL,
               "a call with {} bytes", bytes);
    CLEW_CHECK(call.who.thread > clew::Tid(0), "thread {}", call.who.thread);
    CLEW_CHECK(!call.output_digest || call.output_bytes > 0, "empty output");
    return {};
  }
  Status OnSignal(const bpf::InputSignal& signal) override {
    CLEW_CHECK(signal.number >= 1 && signal.number <= 64, "signal {}",
               signal.number);
    return {};
  }
  Status OnLoss(const bpf::InputLoss& loss) override {
    CLEW_CHECK(loss.count > 0 && !loss.causes.empty(), "a loss of nothing");
    return {};
  }
  Status OnThreadEnd(const bpf::ThreadName&) override { return {}; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto rest = std::as_bytes(std::span(data, size));
  bpf::CallAssembler assembler(kCallBytesMax);
  CheckingSink sink;
  while (!rest.empty()) {
    const size_t length =
        std::min<size_t>(std::to_integer<size_t>(rest[0]), rest.size() - 1);
    const auto event = bpf::ParseInputEvent(rest.subspan(1, length));
    rest = rest.subspan(1 + length);
    if (event) {
      CLEW_CHECK(assembler.Take(*event, sink).has_value(), "the sink's error");
    }
  }
  CLEW_CHECK(assembler.FinishAll(sink).has_value(), "the sink's error");
  return 0;
}
