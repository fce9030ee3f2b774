#include "recorder/qemu/input_writer.h"

#include <utility>

namespace clew::recorder {
namespace {

// Field numbers of Input (proto/bundle.proto).
constexpr uint32_t kInputThread = 1;
constexpr uint32_t kInputSyscall = 2;
constexpr uint32_t kInputSignal = 3;
constexpr uint32_t kInputInsn = 4;
constexpr uint32_t kInputUnknown = 5;

// Of Write.
constexpr uint32_t kWriteAddr = 1;
constexpr uint32_t kWriteData = 2;

MemoryRange RangeOf(const MemoryRange& range) { return range; }
MemoryRange RangeOf(const MemoryWrite& write) {
  return {write.addr.as_int(), write.bytes.size()};
}

uint64_t WriteMessageBytes(const MemoryRange& range) {
  Wire addr;
  addr.Number(kWriteAddr, range.addr);
  return addr.bytes().size() + Wire::FieldBytes(kWriteData, range.size_bytes);
}

}  // namespace

InputWriter::InputWriter(Tid thread, RawFile file, const GuestMemory& memory)
    : thread_(thread), file_(std::move(file)), memory_(memory) {}

void InputWriter::Add(const SyscallInput& call,
                      const std::vector<MemoryRange>& writes) {
  AddCall(call, writes);
}
void InputWriter::Add(const SyscallInput& call) { AddCall(call, call.writes); }
void InputWriter::Add(const SignalInput& signal,
                      const std::vector<MemoryRange>& writes) {
  AddSignal(signal, writes);
}
void InputWriter::Add(const SignalInput& signal) {
  AddSignal(signal, signal.writes);
}

void InputWriter::Append(const MemoryRange& range) {
  unreadable_bytes_ += memory_.CopyTo(file_, range.addr, range.size_bytes);
}
void InputWriter::Append(const MemoryWrite& write) {
  file_.Append(write.bytes);
}

template <class Write>
void InputWriter::AddCall(const SyscallInput& call,
                          const std::vector<Write>& writes) {
  Wire before;
  before.Number(1, call.number);
  Wire packed;
  for (const uint64_t arg : call.args) {
    packed.Varint(arg);
  }
  before.Text(2, packed.bytes());
  before.Number(3, call.result.has_value() ? 1 : 0);
  before.Number(4, static_cast<uint64_t>(call.result.value_or(0)));
  Wire after;
  after.Number(6, call.output_digest.has_value() ? 1 : 0);
  after.Number(7, call.output_digest.value_or(0));
  after.Number(8, call.output_bytes);
  after.Number(9, call.entered_tsc.as_int());
  after.Number(10, call.left_tsc.as_int());
  after.Number(11, call.read_digest.value_or(0));
  after.Number(12, call.shared_memory);
  after.Number(13, call.written_offset.has_value() ? 1 : 0);
  after.Number(14, call.written_offset.value_or(0));
  Emit(kInputSyscall, before, writes, 5, after);
}

template <class Write>
void InputWriter::AddSignal(const SignalInput& signal,
                            const std::vector<Write>& writes) {
  Wire before;
  before.Number(1, static_cast<uint64_t>(signal.number));
  before.Number(2, signal.interrupted_ip.as_int());
  before.Number(3, signal.handler_ip.as_int());
  before.Number(4, signal.rsp);
  before.Number(5, signal.rdi);
  before.Number(6, signal.rsi);
  before.Number(7, signal.rdx);
  before.Number(8, signal.rax);
  Wire after;
  after.Number(10, static_cast<uint64_t>(signal.sent_to));
  Emit(kInputSignal, before, writes, 9, after);
}

void InputWriter::Add(const InsnInput& insn) {
  Wire message;
  message.Number(1, insn.ip.as_int());
  message.Number(2, insn.rax);
  message.Number(3, insn.rbx);
  message.Number(4, insn.rcx);
  message.Number(5, insn.rdx);
  message.Number(6, insn.rflags);
  Emit(kInputInsn, message, std::vector<MemoryRange>(), 0, Wire());
}

void InputWriter::Add(const UnknownInput& unknown) {
  Wire message;
  message.Number(1, unknown.count);
  message.Text(2, unknown.cause);
  Emit(kInputUnknown, message, std::vector<MemoryRange>(), 0, Wire());
}

// Input{thread, kind{before, writes..., after}}, with its length before it.
template <class Write>
void InputWriter::Emit(uint32_t kind_field, const Wire& before,
                       const std::vector<Write>& writes, uint32_t writes_field,
                       const Wire& after) {
  uint64_t kind_bytes = before.bytes().size() + after.bytes().size();
  for (const Write& write : writes) {
    kind_bytes +=
        Wire::FieldBytes(writes_field, WriteMessageBytes(RangeOf(write)));
  }
  Wire thread;
  thread.Number(kInputThread, static_cast<uint64_t>(thread_.as_int()));

  Wire head;
  head.Varint(thread.bytes().size() + Wire::FieldBytes(kind_field, kind_bytes));
  file_.Append(head.bytes());
  file_.Append(thread.bytes());
  head.Clear();
  head.Head(kind_field, kind_bytes);
  file_.Append(head.bytes());
  file_.Append(before.bytes());
  for (const Write& write : writes) {
    const MemoryRange range = RangeOf(write);
    head.Clear();
    head.Head(writes_field, WriteMessageBytes(range));
    head.Number(kWriteAddr, range.addr);
    head.Head(kWriteData, range.size_bytes);
    file_.Append(head.bytes());
    Append(write);
  }
  file_.Append(after.bytes());
}

}  // namespace clew::recorder
