// Client::Get.

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "common/bytes.h"
#include "common/check.h"
#include "common/os/file.h"
#include "common/text/path_names.h"
#include "transfer/client_connection.h"
#include "transfer/protocol.h"

namespace clew::transfer {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kGetMsMax = 600'000;  // one call; the next one goes on
constexpr std::string_view kSchedule = "schedule.pb";

// Writes a bundle's folder from its chunks as they come, in order of the list;
// what has not the digest that it must have is never written.
class FolderWriter {
 public:
  FolderWriter(FileSystem& files, std::string folder)
      : files_(files), folder_(std::move(folder)) {}

  [[nodiscard]] Status Begin(FileList list);
  bool begun() const { return list_.has_value(); }
  // REQUIRES: begun().
  const FileList& list() const {
    CLEW_CHECK(list_, "no list yet");
    return *list_;
  }
  // Whole chunks taken: where to go on after a break.
  uint32_t chunks_taken() const { return chunks_taken_; }
  uint64_t bytes_taken() const { return bytes_taken_; }
  // After a break: what came of the next chunk is sent again.
  void DropPart() { part_.clear(); }
  [[nodiscard]] Status Take(const std::string& data_untrusted);
  // Every file is whole and synced, then the folders; `schedule` takes the
  // place of the bundle's own, nullopt: none.
  [[nodiscard]] Status Finish(const std::optional<std::string>& schedule);

 private:
  [[nodiscard]] Status MakeFolder(const std::string& path);
  // Opens the next file, and those of no bytes before it.
  [[nodiscard]] Status OpenNext();
  [[nodiscard]] Status TakeChunk(const std::string& bytes_untrusted);

  FileSystem& files_;
  const std::string folder_;
  std::optional<FileList> list_;
  std::set<std::string> folders_;  // made
  size_t next_file_ = 0;
  std::unique_ptr<WritableFile> file_;  // of files()[next_file_ - 1]
  size_t next_chunk_ = 0;               // of that file
  uint32_t chunks_taken_ = 0;
  uint64_t bytes_taken_ = 0;
  std::string part_;  // of the next chunk
};

Status FolderWriter::MakeFolder(const std::string& path) {
  if (folders_.contains(path)) {
    return {};
  }
  if (path != folder_) {
    CLEW_RETURN_IF_ERROR(MakeFolder(ParentFolder(path)));
  }
  CLEW_RETURN_IF_ERROR(files_.CreateDirectory(path));
  folders_.insert(path);
  return {};
}

Status FolderWriter::Begin(FileList list) {
  list_ = std::move(list);
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(folder_));
  CLEW_RETURN_IF_ERROR(MakeFolder(folder_));
  return OpenNext();
}

Status FolderWriter::OpenNext() {
  while (next_file_ < list().files().size()) {
    if (file_ != nullptr) {
      CLEW_RETURN_IF_ERROR(file_->Sync());
    }
    const FileEntry& entry = list().files()[next_file_++];
    const std::string path = folder_ + "/" + entry.path;
    CLEW_RETURN_IF_ERROR(MakeFolder(ParentFolder(path)));
    CLEW_ASSIGN_OR_RETURN(file, files_.Create(path));
    file_ = std::move(file);
    next_chunk_ = 0;
    if (!entry.chunks.empty()) {
      return {};
    }
  }
  return {};
}

Status FolderWriter::TakeChunk(const std::string& bytes_untrusted) {
  const FileEntry& entry = list().files()[next_file_ - 1];
  if (ChunkId(Sha256Of(AsBytes(bytes_untrusted))) !=
      entry.chunks[next_chunk_]) {
    return CorruptInput(
        "{}: chunk {} came with another digest than the bundle's list says; "
        "have the collector's disk checked with 'clew-collector check'",
        entry.path, next_chunk_);
  }
  CLEW_RETURN_IF_ERROR(file_->Append(AsBytes(bytes_untrusted)));
  bytes_taken_ += bytes_untrusted.size();
  ++chunks_taken_;
  if (++next_chunk_ == entry.chunks.size()) {
    return OpenNext();
  }
  return {};
}

Status FolderWriter::Take(const std::string& data_untrusted) {
  std::string_view rest = data_untrusted;
  while (!rest.empty()) {
    const FileEntry& entry = list().files()[next_file_ - 1];
    if (next_chunk_ >= entry.chunks.size()) {
      return CorruptInput("the collector sends more than the bundle's list");
    }
    const uint64_t wanted = entry.chunk(next_chunk_).size_bytes - part_.size();
    const std::string_view some = rest.substr(0, wanted);
    part_ += some;
    rest.remove_prefix(some.size());
    if (some.size() == wanted) {
      CLEW_RETURN_IF_ERROR(TakeChunk(part_));
      part_.clear();
    }
  }
  return {};
}

Status FolderWriter::Finish(const std::optional<std::string>& schedule) {
  if (bytes_taken_ != list().size_bytes()) {
    return CorruptInput("{} of {} bytes came", bytes_taken_,
                        list().size_bytes());
  }
  CLEW_RETURN_IF_ERROR(file_->Sync());
  file_.reset();
  if (schedule) {
    CLEW_RETURN_IF_ERROR(WriteWholeFile(
        files_, folder_ + "/" + std::string(kSchedule), AsBytes(*schedule)));
  }
  for (const std::string& path : folders_) {
    CLEW_RETURN_IF_ERROR(files_.SyncDirectory(path));
  }
  return {};
}

}  // namespace

// One download, over as many attempts as it takes.
class Downloader {
 public:
  using Attempt = Client::Connection::Attempt;
  Downloader(Client::Connection& connection, std::string_view prefix,
             FolderWriter& writer, ProgressSink* progress)
      : connection_(connection),
        prefix_(prefix),
        writer_(writer),
        progress_(progress) {}

  [[nodiscard]] Status Run(Attempt* told);

 private:
  [[nodiscard]] Status Head(const pb::GetPart& part);
  [[nodiscard]] Status TakePart(const pb::GetPart& part);
  [[nodiscard]] Status Finish();

  Client::Connection& connection_;
  const std::string prefix_;
  FolderWriter& writer_;
  ProgressSink* const progress_;
  bool head_seen_ = false;  // of this attempt
  std::string schedule_;
  uint64_t schedule_bytes_ = 0;
  std::string schedule_digest_;
};

Status Downloader::Head(const pb::GetPart& part) {
  CLEW_ASSIGN_OR_RETURN(list, FileList::Parse(AsBytes(part.files())));
  if (!list.id().hex().starts_with(prefix_) ||
      (writer_.begun() && writer_.list().id() != list.id())) {
    return CorruptInput("the collector sends bundle {}, asked for was {}",
                        list.id().hex(), prefix_);
  }
  if (part.schedule_bytes() > kScheduleBytesMax) {
    return LimitReached("the schedule has {} bytes, at most {} are taken",
                        part.schedule_bytes(), kScheduleBytesMax);
  }
  head_seen_ = true;
  schedule_.clear();
  schedule_bytes_ = part.schedule_bytes();
  schedule_digest_ = part.schedule_digest();
  return writer_.begun() ? Status() : writer_.Begin(std::move(list));
}

Status Downloader::TakePart(const pb::GetPart& part) {
  if (!head_seen_) {
    return Head(part);
  }
  schedule_ += part.schedule();
  if (schedule_.size() > schedule_bytes_) {
    return CorruptInput("the collector sends more of a schedule than it said");
  }
  CLEW_RETURN_IF_ERROR(writer_.Take(part.data()));
  if (progress_ != nullptr) {
    progress_->Update(writer_.bytes_taken(), writer_.list().size_bytes());
  }
  return {};
}

Status Downloader::Finish() {
  if (!head_seen_) {
    return SystemError(EAGAIN, "the collector sent nothing");
  }
  if (schedule_bytes_ == 0) {
    return writer_.Finish(std::nullopt);
  }
  if (ToText(Sha256Of(AsBytes(schedule_))) != schedule_digest_) {
    return CorruptInput(
        "the schedule that the collector found came with another digest than "
        "announced");
  }
  return writer_.Finish(schedule_);
}

Status Downloader::Run(Attempt* told) {
  pb::GetRequest request;
  request.set_id(prefix_);
  request.set_first_chunk(writer_.chunks_taken());
  writer_.DropPart();
  head_seen_ = false;
  Client::Connection::Call call(connection_, kGetMsMax);
  const auto stream = connection_.stub().Get(call.context(), request);
  const uint32_t before = writer_.chunks_taken();
  pb::GetPart part;
  Status taken;
  while (taken && stream->Read(&part)) {
    taken = TakePart(part);
  }
  told->advanced = writer_.chunks_taken() > before;
  if (!taken) {
    told->local = true;
    call.context()->TryCancel();
  }
  const Status ended = connection_.ToStatus(stream->Finish());
  CLEW_RETURN_IF_ERROR(taken);
  CLEW_RETURN_IF_ERROR(ended);
  told->local = true;
  return Finish();
}

Result<BundleId> Client::Get(std::string_view prefix, const std::string& out,
                             FileSystem& files, ProgressSink* progress) {
  if (Exists(out)) {
    return InvalidArgument("{:?} exists; remove it or choose another name",
                           out);
  }
  const std::string partial = out + ".partial";
  FolderWriter writer(files, partial);
  Downloader downloader(*connection_, prefix, writer, progress);
  uint64_t attempts = 0;
  Status got = connection_->Retry(
      [&](Connection::Attempt* told) { return downloader.Run(told); },
      &attempts);
  if (got) {
    got = files.Rename(partial, out);
  }
  if (!got) {
    if (writer.begun()) {
      (void)files.RemoveAll(partial);  // the first error is the one to report
    }
    return std::unexpected(got.error());
  }
  CLEW_RETURN_IF_ERROR(files.SyncDirectory(ParentFolder(out)));
  return writer.list().id();
}

}  // namespace clew::transfer
