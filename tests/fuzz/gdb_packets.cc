// What a stranger at gdb's end of the connection can send. The first byte says
// how the rest is meant: 'S' as the byte stream, with frames and checksums;
// anything else as payloads, one a line, so that commands are reached without
// guessing checksums. A toy run of a few hundred instructions is behind it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/check.h"
#include "replayer/gdb/gdb_packet.h"
#include "replayer/gdb/gdb_session.h"
#include "tests/replayer/fake_target.h"

namespace {

using clew::replayer::FakeTarget;
using clew::replayer::ImageFiles;
using clew::replayer::RandomSteps;
using clew::replayer::Timeline;
using clew::replayer::ToyThreads;
using clew::replayer::gdb::GdbClient;
using clew::replayer::gdb::GdbPacketReader;
using clew::replayer::gdb::GdbSession;
using clew::replayer::gdb::Incoming;
using clew::replayer::gdb::kPacketBytesMax;
using clew::replayer::gdb::MakeFrame;

class SilentClient final : public GdbClient {
 public:
  bool Interrupted() override { return false; }
  void Notify(std::string_view payload) override {
    CLEW_CHECK(payload.size() <= kPacketBytesMax, "notice too long");
  }
};

// One packet; false once the session is over.
bool Handle(GdbSession& session, std::string_view packet) {
  const auto reply = session.Handle(packet);
  CLEW_CHECK(reply.payload.size() <= kPacketBytesMax, "reply of {} bytes",
             reply.payload.size());
  (void)MakeFrame(reply.payload);
  return !reply.close;
}

void HandleStream(GdbSession& session, std::span<const std::byte> bytes) {
  GdbPacketReader reader;
  while (const auto item = reader.Next(bytes)) {
    if (item->kind == Incoming::Kind::kPacket &&
        !Handle(session, item->payload)) {
      return;
    }
  }
}

void HandleLines(GdbSession& session, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (!Handle(session, text.substr(0, end))) {
      return;
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kInputMax = 4096;
  if (size == 0 || size > kInputMax) {
    return 0;
  }
  FakeTarget target(ToyThreads(3, 7), RandomSteps(1, 3, 40, 6), {});
  Timeline timeline(target, {.checkpoint_insns = 32, .checkpoints_max = 4});
  ImageFiles files;
  SilentClient client;
  GdbSession session(timeline, files, client);
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] == 'S') {
    HandleStream(session, bytes);
  } else {
    HandleLines(session,
                {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return 0;
}
