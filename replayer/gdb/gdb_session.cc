#include "replayer/gdb/gdb_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "common/text/hex.h"
#include "replayer/gdb/gdb_packet.h"
#include "replayer/gdb/gdb_registers.h"

namespace clew::replayer::gdb {
namespace {

constexpr std::string_view kOk = "OK";
constexpr std::string_view kBadRequest = "E01";
constexpr std::string_view kNoMemory = "E0e";  // as EFAULT
constexpr std::string_view kRefusedWrite =
    "E.a replay is read-only: what it shows has already happened";

Reply Say(std::string_view payload) {
  return {.payload = std::string(payload)};
}

}  // namespace

GdbSession::GdbSession(Timeline& timeline, ImageFiles& files, GdbClient& client)
    : timeline_(timeline),
      monitor_{.timeline = timeline},
      client_(client),
      file_server_(files, timeline.target()) {
  timeline_.set_output(this);
}

GdbSession::~GdbSession() { timeline_.set_output(nullptr); }

// Program output, shown by gdb's console.
void GdbSession::OnOutput(std::span<const std::byte> bytes) {
  constexpr size_t kChunk = (kPacketBytesMax - 1) / 2;
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(bytes.size(), kChunk));
    client_.Notify("O" + ToHex(chunk));
    bytes = bytes.subspan(chunk.size());
  }
}

Reply GdbSession::Handle(std::string_view packet_untrusted) {
  if (packet_untrusted.empty()) {
    return Say("");
  }
  FieldReader fields(packet_untrusted.substr(1));
  switch (packet_untrusted.front()) {
    case '?':
      return Say(PresentStop());
    case 'g':
      return Say(ReadAllRegisters());
    case 'p':
      return Say(ReadRegister(fields));
    case 'G':
    case 'P':
      return Say(kRefusedWrite);
    case 'm':
      return Say(ReadMemory(fields));
    case 'M':
    case 'X':
      return Say(WriteMemory(fields));
    case 'H':
      return Say(SelectThread(fields));
    case 'T':
      return Say(ThreadAlive(fields));
    case 'Z':
      return Say(SetStopPoint(true, fields));
    case 'z':
      return Say(SetStopPoint(false, fields));
    case 'c':
      return Say(ResumeForward(std::nullopt));
    case 's':
      return Say(ResumeForward(continue_thread_.value_or(GeneralThread())));
    case 'b':
      if (fields.rest() == "s") {
        return Say(ReverseStep());
      }
      return Say(fields.rest() == "c" ? ReverseContinue() : "");
    case 'q':
    case 'Q':
      return HandleQuery(packet_untrusted);
    case 'v':
      return HandleV(fields);
    case 'D':
      return {.payload = std::string(kOk), .close = true};
    case 'k':
      return {.payload = {}, .send = false, .close = true};
    default:
      return Say("");
  }
}

Reply GdbSession::HandleV(FieldReader fields) {
  if (fields.Take("Cont?")) {
    return Say("vCont;c;C;s;S;t;r");
  }
  if (fields.Take("Cont;")) {
    return Say(ResumeV(fields));
  }
  if (fields.Take("File:")) {
    return Say(file_server_.Handle(fields.rest()));
  }
  if (fields.Take("Kill;")) {
    return {.payload = std::string(kOk), .close = true};
  }
  return Say("");
}

bool GdbSession::Exists(Tid tid) const {
  return timeline_.target().ReadRegisters(tid).has_value();
}

Tid GdbSession::GeneralThread() const {
  return general_thread_ && Exists(*general_thread_)
             ? *general_thread_
             : timeline_.CurrentThread();
}

std::string GdbSession::SelectThread(FieldReader fields) {
  const bool general = fields.Take("g");
  if (!general && !fields.Take("c")) {
    return std::string(kBadRequest);
  }
  const auto id = fields.TakeThread();
  if (!id) {
    return std::string(kBadRequest);
  }
  std::optional<Tid>& selected = general ? general_thread_ : continue_thread_;
  if (*id <= 0) {  // any, all
    selected = std::nullopt;
    return std::string(kOk);
  }
  if (!Exists(Tid(*id))) {
    return std::string(kBadRequest);
  }
  selected = Tid(*id);
  return std::string(kOk);
}

std::string GdbSession::ThreadAlive(FieldReader fields) const {
  const auto id = fields.TakeThread();
  return std::string(id && Exists(Tid(*id)) ? kOk : kBadRequest);
}

std::string GdbSession::ReadAllRegisters() const {
  const ReplayTarget& target = timeline_.target();
  const auto registers = target.ReadRegisters(GeneralThread());
  return registers ? AllRegistersHex(*registers, target.cpu_features())
                   : std::string(kBadRequest);
}

std::string GdbSession::ReadRegister(FieldReader fields) const {
  const auto number = fields.TakeHex();
  const ReplayTarget& target = timeline_.target();
  const auto registers = target.ReadRegisters(GeneralThread());
  if (!number || *number >= RegisterCount(target.cpu_features()) ||
      !registers) {
    return std::string(kBadRequest);
  }
  return RegisterHex(*registers, *number);
}

std::string GdbSession::ReadMemory(FieldReader fields) const {
  const auto addr = fields.TakeHex();
  const auto size = fields.TakeCommaHex();
  if (!addr || !size) {
    return std::string(kBadRequest);
  }
  std::vector<std::byte> bytes(std::min<uint64_t>(*size, kPacketBytesMax / 2));
  const size_t read = timeline_.target().ReadMemoryOf(GeneralThread(),
                                                      TraceeAddr(*addr), bytes);
  if (read == 0 && *size != 0) {
    return std::string(kNoMemory);
  }
  return ToHex(std::span(bytes).first(read));
}

std::string GdbSession::WriteMemory(FieldReader fields) const {
  const auto addr = fields.TakeHex();
  const auto size = fields.TakeCommaHex();
  if (!addr || !size) {
    return std::string(kBadRequest);
  }
  // gdb probes for the X packet by writing nothing.
  return std::string(*size == 0 ? kOk : kRefusedWrite);
}

std::string GdbSession::SetStopPoint(bool insert, FieldReader fields) {
  const auto type = fields.TakeHex();
  const auto addr = fields.TakeCommaHex();
  const auto size = fields.TakeCommaHex();
  if (!type || !addr || !size) {
    return std::string(kBadRequest);
  }
  static constexpr WatchKind kKinds[] = {WatchKind::kWrite, WatchKind::kRead,
                                         WatchKind::kAccess};
  switch (*type) {
    case 0:
    case 1:
      return SetBreakpoint(insert, *addr, *type == 1);
    case 2:
    case 3:
    case 4:
      return SetWatchpoint(insert, {*addr, *size, kKinds[*type - 2]});
    default:
      return {};
  }
}

std::string GdbSession::SetWatchpoint(bool insert, const Watchpoint& watch) {
  if (insert) {
    return std::string(points_.AddWatchpoint(watch) ? kOk : kBadRequest);
  }
  points_.RemoveWatchpoint(watch);
  return std::string(kOk);
}

std::string GdbSession::SetBreakpoint(bool insert, uint64_t addr,
                                      bool hardware) {
  if (insert && !points_.AddBreakpoint(addr)) {
    return std::string(kBadRequest);
  }
  BreakpointKinds& kinds = breakpoints_[addr];
  (hardware ? kinds.hardware : kinds.software) = insert;
  if (!kinds.hardware && !kinds.software) {
    breakpoints_.erase(addr);
    points_.RemoveBreakpoint(addr);
  }
  return std::string(kOk);
}

}  // namespace clew::replayer::gdb
