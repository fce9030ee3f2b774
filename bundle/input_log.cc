#include "bundle/input_log.h"

#include <utility>

#include "bundle/convert_inputs.h"
#include "bundle/manifest/message.h"
#include "bundle/manifest/varint.h"

namespace clew::bundle {
namespace {

constexpr uint8_t kThreadTag = 8;  // field 1, varint

// The thread of a record. Writers put fields in order of number; a record that
// does not begin so is parsed whole.
std::optional<Tid> ThreadOf(std::span<const std::byte> record) {
  uint64_t at = 1;
  if (!record.empty() && record[0] == std::byte{kThreadTag}) {
    if (const auto value = ReadVarint(record, at)) {
      return Tid(static_cast<int32_t>(*value));
    }
  }
  pb::Input input;
  if (!ParseMessage(record, input)) {
    return std::nullopt;
  }
  return Tid(input.thread());
}

}  // namespace

Result<std::unique_ptr<InputLog>> InputLog::Open(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  std::unique_ptr<InputLog> log(new InputLog(path));
  log->bytes_ = file.bytes();
  log->file_ = std::move(file);
  CLEW_RETURN_IF_ERROR(log->Index());
  return log;
}

Result<std::unique_ptr<InputLog>> InputLog::Over(
    std::span<const std::byte> bytes, const std::string& name) {
  std::unique_ptr<InputLog> log(new InputLog(name));
  log->bytes_ = bytes;
  CLEW_RETURN_IF_ERROR(log->Index());
  return log;
}

Result<std::span<const std::byte>> InputLog::RecordAt(uint64_t& offset) const {
  const uint64_t start = offset;
  const auto size = ReadVarint(bytes_, offset);
  if (!size) {
    return CorruptInput("{}: offset {:#x}: record length is no varint", name_,
                        start);
  }
  if (*size > kMessageBytesMax || *size > bytes_.size() - offset) {
    return CorruptInput(
        "{}: offset {:#x}: record length is {}, the file has {} bytes left",
        name_, start, *size, bytes_.size() - offset);
  }
  const auto record = bytes_.subspan(offset, *size);
  offset += *size;
  return record;
}

Status InputLog::Index() {
  for (uint64_t offset = 0; offset < bytes_.size();) {
    const uint64_t start = offset;
    CLEW_ASSIGN_OR_RETURN(record, RecordAt(offset));
    const auto thread = ThreadOf(record);
    if (!thread) {
      return NoMessage(record, pb::Input(), name_, offset - record.size());
    }
    if (*thread <= Tid(0)) {
      return CorruptInput("{}: offset {:#x}: thread is {}, wanted above 0",
                          name_, start, *thread);
    }
    threads_[*thread].offsets.push_back(start);
  }
  return {};
}

Result<std::optional<InputRecord>> InputLog::Next(Tid tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end() ||
      found->second.next == found->second.offsets.size()) {
    return std::optional<InputRecord>();
  }
  uint64_t offset = found->second.offsets[found->second.next];
  const std::string where = fmt::format("{}: offset {:#x}", name_, offset);
  CLEW_ASSIGN_OR_RETURN(record, RecordAt(offset));
  pb::Input input;
  if (!ParseMessage(record, input)) {
    return NoMessage(record, input, name_, offset - record.size());
  }
  if (Tid(input.thread()) != tid) {
    return CorruptInput("{}: Input.thread is {} and {}, wanted one thread",
                        where, tid, input.thread());
  }
  CLEW_ASSIGN_OR_RETURN(converted, ToInput(input, where));
  ++found->second.next;
  return std::optional<InputRecord>(std::move(converted));
}

std::vector<Tid> InputLog::threads() const {
  std::vector<Tid> tids;
  tids.reserve(threads_.size());
  for (const auto& [tid, thread] : threads_) {
    tids.push_back(tid);
  }
  return tids;
}

}  // namespace clew::bundle
