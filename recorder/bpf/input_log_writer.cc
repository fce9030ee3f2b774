#include "recorder/bpf/input_log_writer.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <cstring>

#include "proto/bundle.pb.h"

namespace clew::recorder::bpf {
namespace {

bool IsExec(uint64_t number) {
  return number == __NR_execve || number == __NR_execveat;
}

Causes OfMappedFile() {
  Causes causes;
  causes.Add(kRawMappedFile);
  return causes;
}

template <class Message>
void AddWrite(const MemoryPiece& piece, Message& to) {
  pb::Write& write = *to.add_writes();
  write.set_addr(piece.addr.as_int());
  write.set_data(piece.bytes.data(), piece.bytes.size());
}

// `clock`: null for no times.
void Fill(const InputCall& from, const ClockSamples* clock, pb::Syscall& to) {
  to.set_number(from.number);
  for (const uint64_t arg : from.args) {
    to.add_args(arg);
  }
  to.set_returned(from.result.has_value());
  to.set_result(from.result.value_or(0));
  for (const MemoryPiece& piece : from.writes) {
    AddWrite(piece, to);
  }
  to.set_has_output(from.output_digest.has_value());
  to.set_output_digest(from.output_digest.value_or(0));
  to.set_output_bytes(from.output_bytes);
  if (clock == nullptr) {
    return;
  }
  // The end of each interval at which what the field says holds for sure.
  if (const auto entered = clock->ToTsc(from.entered)) {
    to.set_entered_tsc(entered->hi.as_int());
  }
  if (const auto left = clock->ToTsc(from.left); left && from.result) {
    to.set_left_tsc(left->lo.as_int());
  }
}

// Where the handler returns to: a call that it interrupted may be made again.
// Source: linux arch/x86/include/asm/sigframe.h, struct rt_sigframe, and
// uapi/asm/sigcontext.h: uc.uc_mcontext.rip.
uint64_t ReturnAddress(const InputSignal& signal) {
  constexpr size_t kRipAt = 8 + 40 + 16 * 8;
  uint64_t rip = signal.interrupted_ip.as_int();
  if (!signal.frame.empty() &&
      signal.frame.front().bytes.size() >= kRipAt + sizeof(rip)) {
    std::memcpy(&rip, signal.frame.front().bytes.data() + kRipAt, sizeof(rip));
  }
  return rip;
}

void Fill(const InputSignal& from, pb::Signal& to) {
  to.set_number(from.number);
  to.set_interrupted_ip(ReturnAddress(from));
  to.set_handler_ip(from.entry.ip.as_int());
  to.set_rsp(from.entry.rsp);
  to.set_rdi(from.entry.rdi);
  to.set_rsi(from.entry.rsi);
  to.set_rdx(from.entry.rdx);
  to.set_rax(from.entry.rax);
  for (const MemoryPiece& piece : from.frame) {
    AddWrite(piece, to);
  }
}

// With its length before it.
void Delimit(const pb::Input& input, std::string& record) {
  const std::string bytes = input.SerializeAsString();
  record.clear();
  for (uint64_t rest = bytes.size(); true; rest >>= 7) {
    record += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    if (rest <= 0x7f) {
      break;
    }
  }
  record += bytes;
}

}  // namespace

InputLogWriter::InputLogWriter(WritableFile& file, const ClockSamples& clock,
                               const InputLogOptions& options)
    : file_(file),
      clock_(options.tsc_times ? &clock : nullptr),
      mapped_files_(options.process),
      options_(options),
      begun_(!options.from_exec) {}

bool InputLogWriter::Wants(const ThreadName& who) const {
  return begun_ && who.process == options_.process;
}

Status InputLogWriter::Append(const std::string& record) {
  CLEW_RETURN_IF_ERROR(file_.Append(std::as_bytes(std::span(record))));
  counts_.bytes += record.size();
  return {};
}

Status InputLogWriter::AppendUnknown(const ThreadName& who, uint64_t count,
                                     Causes causes, const InputCall* call) {
  counts_.unknown += count;
  pb::Input input;
  input.set_thread(who.thread.as_int());
  pb::Unknown& unknown = *input.mutable_unknown();
  unknown.set_count(count);
  unknown.set_cause(ToString(causes));
  if (call != nullptr) {
    Fill(*call, clock_, *unknown.mutable_call());
  }
  Delimit(input, record_);
  return Append(record_);
}

// One record for each thread; what follows it is counted alone.
Status InputLogWriter::AppendPastLimit(const ThreadName& who, uint64_t count) {
  if (!past_limit_.insert(who.thread.as_int()).second) {
    counts_.unknown += count;
    return {};
  }
  Causes causes;
  causes.Add(kRawLogLimit);
  return AppendUnknown(who, count, causes, nullptr);
}

Status InputLogWriter::OnCall(const InputCall& call) {
  if (call.who.process == options_.process && IsExec(call.number) &&
      call.result == 0 && !begun_) {
    begun_ = true;
    return {};
  }
  if (!Wants(call.who)) {
    return {};
  }
  Causes unknown = call.unknown;
  if (IsExec(call.number) && call.result == 0) {
    unknown.Add(kRawExec);
  }
  if (counts_.bytes >= options_.bytes_max) {
    return AppendPastLimit(call.who, 1);
  }
  std::optional<std::vector<std::byte>> mapped;
  if (unknown == OfMappedFile()) {
    mapped = mapped_files_.Read(call);
    unknown = mapped ? Causes() : unknown;
  }
  if (!unknown.empty()) {
    return AppendUnknown(call.who, 1, unknown, &call);
  }
  ++counts_.calls;
  pb::Input input;
  input.set_thread(call.who.thread.as_int());
  Fill(call, clock_, *input.mutable_syscall());
  if (mapped && !mapped->empty()) {
    AddWrite(
        {.addr = TraceeAddr(static_cast<uint64_t>(call.result.value_or(0))),
         .bytes = *mapped},
        *input.mutable_syscall());
  }
  Delimit(input, record_);
  return Append(record_);
}

// Signals without a handler change nothing but by ending the process.
Status InputLogWriter::OnSignal(const InputSignal& signal) {
  if (!Wants(signal.who) || !IsHandler(signal.handler)) {
    return {};
  }
  if (counts_.bytes >= options_.bytes_max) {
    return AppendPastLimit(signal.who, 1);
  }
  if (!signal.unknown.empty()) {
    return AppendUnknown(signal.who, 1, signal.unknown, nullptr);
  }
  ++counts_.signals;
  pb::Input input;
  input.set_thread(signal.who.thread.as_int());
  Fill(signal, *input.mutable_signal());
  Delimit(input, record_);
  return Append(record_);
}

Status InputLogWriter::OnLoss(const InputLoss& loss) {
  if (!Wants(loss.who)) {
    return {};
  }
  if (counts_.bytes >= options_.bytes_max) {
    return AppendPastLimit(loss.who, loss.count);
  }
  return AppendUnknown(loss.who, loss.count, loss.causes, nullptr);
}

Status InputLogWriter::OnThreadEnd(const ThreadName&) { return {}; }

}  // namespace clew::recorder::bpf
