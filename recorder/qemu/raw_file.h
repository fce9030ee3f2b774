#ifndef CLEW_RECORDER_QEMU_RAW_FILE_H_
#define CLEW_RECORDER_QEMU_RAW_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "recorder/pt_encoder/pt_sink.h"
#include "recorder/qemu/size_limit.h"

namespace clew::recorder {

// An appended file of a recording in progress, written from inside the traced
// process: its descriptor is the recorder's own (own_descriptor.h), and bytes
// go out when a buffer of fixed size is full.
//
// A write that fails (disk full) is remembered: status() tells, and later bytes
// are dropped. A file that counts towards a SizeLimit drops the recording
// instead, and is empty from then on. Not thread-safe.
class RawFile {
 public:
  static constexpr size_t kBufferBytes = 64 * 1024;

  // `limit` outlives the file; nullptr: it counts nowhere. Where it has dropped
  // the recording, no file is made.
  [[nodiscard]] static Result<RawFile> Create(const std::string& path,
                                              SizeLimit* limit = nullptr);
  RawFile(RawFile&& other) noexcept;
  RawFile& operator=(RawFile&& other) noexcept;
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile();

  void Append(std::span<const std::byte> bytes);
  void Append(std::string_view text) { Append(std::as_bytes(std::span(text))); }
  void AppendZeros(uint64_t count);
  // Writes what is buffered.
  void Flush();
  // Flushes and closes.
  [[nodiscard]] Status Close();
  // Closes, and drops what is buffered: in a copy of the process, whose
  // original goes on to write the file.
  void Abandon();
  // Drops what the file has, and counts nowhere from now on.
  [[nodiscard]] Status BeginAnew();
  const Status& status() const { return status_; }
  uint64_t size_bytes() const { return size_bytes_; }

 private:
  RawFile(std::string path, int fd, SizeLimit* limit);
  void WriteOut(std::span<const std::byte> bytes);
  bool IsDropped();
  void Fail(const Error& error);

  std::string path_;
  int fd_ = -1;  // -1: closed, or never made
  SizeLimit* limit_ = nullptr;
  uint64_t size_bytes_ = 0;
  Status status_;
  std::vector<std::byte> buffer_;
};

// PT bytes of one core into a file.
class RawFileSink final : public PtSink {
 public:
  explicit RawFileSink(RawFile file);
  std::span<uint8_t> Exchange(size_t used_bytes) override;
  RawFile& file() { return file_; }

 private:
  RawFile file_;
  std::vector<uint8_t> room_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_RAW_FILE_H_
