// Goal: a perf.data file holds exactly the records, PT bytes and configuration
// that were given, at the places its header names; a failing file operation is
// reported, whichever it is.
// Method: golden fields read back by position; every k-th operation failing.
// That perf itself reads such files is perf_script_test's.

#include "bundle/perf_data/perf_data_writer.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <filesystem>

#include "common/digest.h"
#include "common/os/file.h"
#include "recorder/software/encoder_description.h"
#include "tests/recorder/value_at.h"

namespace clew::recorder {
namespace {

using bundle::kAuxFlagTruncated;
using bundle::PerfDataConfig;
using bundle::PerfDataWriter;
using bundle::PerfMapping;
using bundle::RecordOrigin;

using Bytes = std::vector<std::byte>;

std::string TextAt(const Bytes& bytes, size_t offset) {
  return reinterpret_cast<const char*>(bytes.data() + offset);
}

// A record with its place in the file.
struct FileRecord {
  uint32_t type = 0;
  uint16_t misc = 0;
  size_t offset = 0;
  size_t size = 0;
};

std::vector<FileRecord> RecordsOf(const Bytes& file) {
  std::vector<FileRecord> records;
  size_t offset = ValueAt<uint64_t>(file, 40);
  const size_t end = offset + ValueAt<uint64_t>(file, 48);
  while (offset < end) {
    FileRecord record{ValueAt<uint32_t>(file, offset),
                      ValueAt<uint16_t>(file, offset + 4), offset,
                      ValueAt<uint16_t>(file, offset + 6)};
    EXPECT_GE(record.size, 8u);
    EXPECT_EQ(record.size % 8, 0u) << "type " << record.type;
    if (record.size < 8) {
      break;
    }
    records.push_back(record);
    offset += record.size;
    if (record.type == 71) {  // AUXTRACE: bytes follow
      offset += ValueAt<uint64_t>(file, record.offset + 8);
    }
  }
  EXPECT_EQ(offset, end);
  return records;
}

class PerfDataWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "clew_writer_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/perf.data";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string PtFile(const std::string& name, size_t bytes) {
    Random random(bytes);
    Bytes content(bytes);
    for (std::byte& byte : content) {
      byte = static_cast<std::byte>(random.Next());
    }
    const std::string path = folder_ + "/" + name;
    EXPECT_TRUE(WriteWholeFile(PosixFileSystem(), path, content));
    return path;
  }

  std::string folder_;
  std::string path_;
};

constexpr RecordOrigin kOrigin = {100, Tid(101), TscTicks(5000), CoreId(1)};

PerfDataConfig TwoCores() {
  PerfDataConfig config;
  config.core_count = 2;
  DescribeEncoder({}, config);
  config.command = {"./server", "--port", "80"};
  return config;
}

// One record of each kind.
Status AddAll(PerfDataWriter& writer) {
  CLEW_RETURN_IF_ERROR(writer.AddComm(kOrigin, "server", true));
  CLEW_RETURN_IF_ERROR(writer.AddMmap2(
      kOrigin, {.addr = TraceeAddr(0x401000),
                .size_bytes = 0x2000,
                .file_offset = 0x1000,
                .prot = 5,
                .path = "/bin/server",
                .build_id = {std::byte{1}, std::byte{2}, std::byte{3}}}));
  CLEW_RETURN_IF_ERROR(writer.AddFork(kOrigin, 100, Tid(102)));
  CLEW_RETURN_IF_ERROR(writer.AddSwitchIn(kOrigin));
  CLEW_RETURN_IF_ERROR(writer.AddItraceStart(kOrigin));
  CLEW_RETURN_IF_ERROR(writer.AddSwitchOut(kOrigin, true));
  CLEW_RETURN_IF_ERROR(writer.AddAux(kOrigin, 64, 128, kAuxFlagTruncated));
  return writer.AddExit(kOrigin, 100, Tid(100));
}

TEST_F(PerfDataWriterTest, RecordsAreAsGiven) {
  auto writer = PerfDataWriter::Create(PosixFileSystem(), path_, TwoCores());
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(AddAll(*writer));
  ASSERT_TRUE(writer->Finish());
  const Bytes file = ReadWholeFile(path_).value();
  EXPECT_EQ(std::memcmp(file.data(), "PERFILE2", 8), 0);
  const std::vector<FileRecord> records = RecordsOf(file);
  const std::vector<uint32_t> types = {70,
                                       79,
                                       PERF_RECORD_COMM,
                                       PERF_RECORD_MMAP2,
                                       PERF_RECORD_FORK,
                                       PERF_RECORD_SWITCH,
                                       PERF_RECORD_ITRACE_START,
                                       PERF_RECORD_SWITCH,
                                       PERF_RECORD_AUX,
                                       PERF_RECORD_EXIT};
  ASSERT_EQ(records.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(records[i].type, types[i]) << i;
    if (i >= 2) {  // pid, tid, time, cpu, identifier
      const size_t id = records[i].offset + records[i].size - 32;
      EXPECT_EQ(ValueAt<int32_t>(file, id), 100);
      EXPECT_EQ(ValueAt<int32_t>(file, id + 4), 101);
      EXPECT_EQ(ValueAt<uint64_t>(file, id + 8), 5000u);
      EXPECT_EQ(ValueAt<uint32_t>(file, id + 16), 1u);
      EXPECT_EQ(ValueAt<uint64_t>(file, id + 24), 4u);  // second event, core 1
    }
  }
  const size_t comm = records[2].offset;
  EXPECT_NE(records[2].misc & PERF_RECORD_MISC_COMM_EXEC, 0);
  EXPECT_EQ(TextAt(file, comm + 16), "server");
  const size_t mmap = records[3].offset;
  EXPECT_NE(records[3].misc & PERF_RECORD_MISC_MMAP_BUILD_ID, 0);
  EXPECT_EQ(ValueAt<uint64_t>(file, mmap + 16), 0x401000u);
  EXPECT_EQ(ValueAt<uint64_t>(file, mmap + 24), 0x2000u);
  EXPECT_EQ(ValueAt<uint64_t>(file, mmap + 32), 0x1000u);
  EXPECT_EQ(ValueAt<uint8_t>(file, mmap + 40), 3u);
  EXPECT_EQ(ValueAt<uint8_t>(file, mmap + 44), 1u);
  EXPECT_EQ(ValueAt<uint32_t>(file, mmap + 64), 5u);
  EXPECT_EQ(TextAt(file, mmap + 72), "/bin/server");
  EXPECT_EQ(ValueAt<int32_t>(file, records[4].offset + 16), 102);  // FORK: tid
  EXPECT_EQ(ValueAt<int32_t>(file, records[4].offset + 20), 101);  // FORK: ptid
  EXPECT_EQ(records[5].misc, 0);
  EXPECT_EQ(records[7].misc,
            PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  EXPECT_EQ(ValueAt<uint64_t>(file, records[8].offset + 8), 64u);
  EXPECT_EQ(ValueAt<uint64_t>(file, records[8].offset + 16), 128u);
  EXPECT_EQ(ValueAt<uint64_t>(file, records[8].offset + 24), 1u);
  EXPECT_FALSE(std::filesystem::exists(path_ + ".records"));
}

// One record for each core that has any PT: perf cannot join packets that two
// records share.
TEST_F(PerfDataWriterTest, PtOfACoreIsOneRecord) {
  const size_t kSizes[] = {0, (size_t{9} << 20) + 5};
  auto writer = PerfDataWriter::Create(PosixFileSystem(), path_, TwoCores());
  ASSERT_TRUE(writer.has_value());
  ASSERT_TRUE(writer->AddAuxtrace(CoreId(0), PtFile("core0", kSizes[0])));
  ASSERT_TRUE(writer->AddAuxtrace(CoreId(1), PtFile("core1", kSizes[1])));
  ASSERT_TRUE(writer->Finish());
  const Bytes file = ReadWholeFile(path_).value();
  const std::vector<FileRecord> records = RecordsOf(file);
  ASSERT_EQ(records.size(), 3u);
  const FileRecord& record = records[2];
  EXPECT_EQ(record.type, 71u);
  EXPECT_EQ(ValueAt<uint64_t>(file, record.offset + 16), 0u);  // offset
  EXPECT_NE(ValueAt<uint64_t>(file, record.offset + 24), 0u);  // reference
  EXPECT_EQ(ValueAt<uint32_t>(file, record.offset + 40), 1u);  // cpu
  Bytes expected = ReadWholeFile(folder_ + "/core1").value();
  expected.resize((expected.size() + 7) / 8 * 8);  // PAD packets
  ASSERT_EQ(ValueAt<uint64_t>(file, record.offset + 8), expected.size());
  EXPECT_EQ(std::memcmp(file.data() + record.offset + record.size,
                        expected.data(), expected.size()),
            0);
}

TEST_F(PerfDataWriterTest, ManyRecordsGoThroughTheBuffer) {
  auto writer = PerfDataWriter::Create(PosixFileSystem(), path_, TwoCores());
  ASSERT_TRUE(writer.has_value());
  constexpr size_t kCount = 50000;
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(writer->AddSwitchIn(kOrigin));
  }
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(RecordsOf(ReadWholeFile(path_).value()).size(), kCount + 2);
}

TEST_F(PerfDataWriterTest, RefusesWhatDoesNotFit) {
  auto writer = PerfDataWriter::Create(PosixFileSystem(), path_, TwoCores());
  ASSERT_TRUE(writer.has_value());
  const Status too_long =
      writer->AddComm(kOrigin, std::string(70000, 'x'), false);
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().code, ErrorCode::kInvalidArgument);
  PerfMapping mapping;
  mapping.build_id.resize(21);
  const Status build_id = writer->AddMmap2(kOrigin, mapping);
  EXPECT_FALSE(build_id.has_value());
  EXPECT_FALSE(writer->AddAuxtrace(CoreId(0), folder_ + "/absent"));
  PerfDataConfig config = TwoCores();
  config.core_count = 0;
  EXPECT_FALSE(PerfDataWriter::Create(PosixFileSystem(), path_, config));
  config = TwoCores();
  config.tsc_ctc_denominator = 0;
  EXPECT_FALSE(PerfDataWriter::Create(PosixFileSystem(), path_, config));
}

// Fails operation number `failing` and all after it.
class FailingFileSystem final : public FileSystem {
 public:
  explicit FailingFileSystem(int failing) : left_(failing) {}

  Result<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Next());
    CLEW_ASSIGN_OR_RETURN(file, real_.Create(path));
    return std::make_unique<File>(*this, std::move(file));
  }
  Status CreateDirectory(const std::string&) override { return Next(); }
  Status Rename(const std::string&, const std::string&) override {
    return Next();
  }
  Status SyncDirectory(const std::string&) override { return Next(); }
  Status SyncFile(const std::string&) override { return Next(); }
  Status RemoveAll(const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Next());
    return real_.RemoveAll(path);
  }

 private:
  class File final : public WritableFile {
   public:
    File(FailingFileSystem& owner, std::unique_ptr<WritableFile> file)
        : owner_(owner), file_(std::move(file)) {}
    Status Append(std::span<const std::byte> bytes) override {
      CLEW_RETURN_IF_ERROR(owner_.Next());
      return file_->Append(bytes);
    }
    Status Sync() override { return owner_.Next(); }

   private:
    FailingFileSystem& owner_;
    std::unique_ptr<WritableFile> file_;
  };

  Status Next() {
    return left_-- > 0 ? Status() : SystemError(ENOSPC, "cannot write");
  }

  FileSystem& real_ = PosixFileSystem();
  int left_;
};

TEST_F(PerfDataWriterTest, EveryFailingOperationIsReported) {
  const std::string pt_path = PtFile("core0", 1000);
  const auto write = [&](FileSystem& files) -> Status {
    CLEW_ASSIGN_OR_RETURN(writer,
                          PerfDataWriter::Create(files, path_, TwoCores()));
    CLEW_RETURN_IF_ERROR(AddAll(writer));
    CLEW_RETURN_IF_ERROR(writer.AddAuxtrace(CoreId(0), pt_path));
    return writer.Finish();
  };
  int operations = 0;
  for (bool written = false; !written; ++operations) {
    ASSERT_LT(operations, 100) << "the writer never finishes";
    FailingFileSystem files(operations);
    const Status status = write(files);
    written = status.has_value();
    if (!written) {
      EXPECT_EQ(status.error().code, ErrorCode::kSystem) << operations;
    }
  }
  EXPECT_GT(operations, 8);
}

}  // namespace
}  // namespace clew::recorder
