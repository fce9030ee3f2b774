// The part of GdbSession that answers q and Q packets.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "common/text/hex.h"
#include "replayer/gdb/gdb_packet.h"
#include "replayer/gdb/gdb_registers.h"
#include "replayer/gdb/gdb_session.h"
#include "replayer/gdb/tls.h"

namespace clew::replayer::gdb {
namespace {

constexpr std::string_view kFeatures =
    "QStartNoAckMode+;qXfer:features:read+;qXfer:auxv:read+;"
    "qXfer:exec-file:read+;qXfer:threads:read+;qXfer:siginfo:read+;"
    "vContSupported+;swbreak+;hwbreak+;ReverseStep+;ReverseContinue+";

// Thread names are the program's own bytes: only what XML and a terminal can
// show goes through.
std::string XmlText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  return escaped;
}

template <class T>
void Put(std::array<char, 128>& to, size_t at, T value) {
  std::memcpy(to.data() + at, &value, sizeof(value));
}

}  // namespace

Reply GdbSession::HandleQuery(std::string_view packet) {
  FieldReader fields(packet);
  if (packet == "QStartNoAckMode") {
    return {.payload = "OK", .stop_acknowledging = true};
  }
  std::string reply;
  if (fields.Take("qSupported")) {
    reply = Supported(fields.rest());
  } else if (packet == "qfThreadInfo") {
    reply = ThreadList();
  } else if (packet == "qsThreadInfo") {
    reply = "l";
  } else if (fields.Take("qThreadExtraInfo,")) {
    reply = ThreadExtra(fields);
  } else if (packet == "qC") {
    reply = fmt::format("QC{:x}", GeneralThread());
  } else if (fields.Take("qXfer:")) {
    reply = Transfer(fields);
  } else if (packet == "qAttached") {
    reply = "1";  // so that gdb detaches when it quits
  } else if (fields.Take("qSymbol:")) {
    reply = LearnSymbol(fields);
  } else if (fields.Take("qGetTLSAddr:")) {
    reply = ThreadLocalAddr(fields);
  } else if (fields.Take("qRcmd,")) {
    reply = Monitor(FromHex(fields.rest()).value_or(""));
  }
  return {.payload = reply};
}

// <value>:<name>, where the value is empty if gdb does not know the symbol
// (yet) and both are empty where it only offers to look one up.
std::string GdbSession::LearnSymbol(FieldReader fields) {
  const auto value = fields.TakeHex();
  (void)fields.Take(":");
  const std::string wanted = ToHex(kModuleIdSymbol);
  if (fields.at_end() && !value) {
    return "qSymbol:" + wanted;
  }
  if (fields.rest() == wanted && value) {
    module_id_desc_ = value;
  }
  return "OK";
}

// <thread>,<offset>,<link_map>
std::string GdbSession::ThreadLocalAddr(FieldReader fields) const {
  const auto thread = fields.TakeThread();
  const auto offset = fields.TakeCommaHex();
  const auto link_map = fields.TakeCommaHex();
  if (!thread || !offset || !link_map || !fields.at_end()) {
    return "E01";
  }
  const auto addr = FindTls(
      timeline_.target(),
      {.thread = Tid(*thread), .offset = *offset, .link_map = *link_map},
      module_id_desc_);
  return addr ? fmt::format("{:x}", *addr) : "E02";
}

std::string GdbSession::Supported(std::string_view features) {
  FieldReader fields(features);
  (void)fields.Take(":");
  while (!fields.at_end()) {
    const std::string_view feature = fields.TakeUntil(';');
    tells_software_breaks_ |= feature == "swbreak+";
    tells_hardware_breaks_ |= feature == "hwbreak+";
  }
  return fmt::format("PacketSize={:x};{}", kPacketBytesMax, kFeatures);
}

std::string GdbSession::ThreadList() const {
  std::string list = "m";
  for (const TargetThread& thread : timeline_.target().Threads()) {
    const std::string id = fmt::format("{:x}", thread.tid);
    if (list.size() + id.size() + 1 > kPacketBytesMax) {
      break;  // gdb asks by qXfer:threads first, which has no such limit
    }
    list += (list.size() > 1 ? "," : "") + id;
  }
  return list;
}

std::string GdbSession::ThreadExtra(FieldReader fields) const {
  const auto id = fields.TakeThread();
  for (const TargetThread& thread : timeline_.target().Threads()) {
    if (id && thread.tid == Tid(*id)) {
      return ToHex(thread.name.empty() ? std::string_view("-")
                                       : std::string_view(thread.name));
    }
  }
  return "E01";
}

// <object>:read:<annex>:<offset>,<length>
std::string GdbSession::Transfer(FieldReader fields) const {
  const std::string_view name = fields.TakeUntil(':');
  const std::string_view operation = fields.TakeUntil(':');
  const std::string_view annex = fields.TakeUntil(':');
  const auto offset = fields.TakeHex();
  const auto length = fields.TakeCommaHex();
  if (operation != "read") {
    return {};
  }
  if (!offset || !length) {
    return "E01";
  }
  const auto object = Object(name, annex);
  if (!object) {
    return "E00";
  }
  if (*offset >= object->size()) {
    return "l";
  }
  const std::string_view rest = std::string_view(*object).substr(*offset);
  size_t used = 0;
  std::string escaped =
      Escape(rest, std::min<uint64_t>(*length, kPacketBytesMax - 1), used);
  return (used < rest.size() ? "m" : "l") + escaped;
}

std::optional<std::string> GdbSession::Object(std::string_view name,
                                              std::string_view annex) const {
  const ReplayTarget& target = timeline_.target();
  if (name == "features" && annex == "target.xml") {
    return TargetXml(target.cpu_features());
  }
  if (name == "auxv") {
    const auto auxv = target.Auxv();
    return std::string(reinterpret_cast<const char*>(auxv.data()), auxv.size());
  }
  if (name == "exec-file") {
    return target.ExecPath();
  }
  if (name == "threads") {
    return ThreadsXml();
  }
  if (name == "siginfo" && FailureSignal()) {
    return SigInfo();
  }
  return std::nullopt;
}

std::string GdbSession::ThreadsXml() const {
  std::string xml = "<?xml version=\"1.0\"?>\n<threads>\n";
  for (const TargetThread& thread : timeline_.target().Threads()) {
    xml += fmt::format("<thread id=\"{:x}\"", thread.tid);
    if (!thread.name.empty()) {
      xml += fmt::format(" name=\"{}\"", XmlText(thread.name));
    }
    xml += "/>\n";
  }
  return xml + "</threads>\n";
}

// siginfo_t of the failure as far as it is recorded: linux
// include/uapi/asm-generic/siginfo.h (si_signo, si_errno, si_code, si_addr).
std::string GdbSession::SigInfo() const {
  const Failure failure = timeline_.target().failure();
  std::array<char, 128> info = {};
  Put<int32_t>(info, 0, failure.signal);
  Put<uint64_t>(info, 16, failure.addr.as_int());
  return {info.data(), info.size()};
}

// The empty reply means an unknown command, so no text is "OK".
std::string GdbSession::Monitor(std::string_view command) {
  const std::string text = RunMonitorCommand(command, monitor_);
  return text.empty() ? "OK" : ToHex(text);
}

}  // namespace clew::replayer::gdb
