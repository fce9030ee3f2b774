// Goal: a failing disk is told by whichever call noticed it; files beside the
// result are gone once it is whole; a round without records is none.
// Method: every k-th operation on files fails.
#include "bundle/perf_data/perf_file_writer.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <filesystem>

#include "tests/support/failing_files.h"

namespace clew::recorder {
namespace {

using bundle::PerfFileHead;
using bundle::PerfFileWriter;

namespace fs = std::filesystem;

class PerfFileWriterTest : public testing::Test {
 protected:
  PerfFileWriterTest() {
    std::string pattern = fs::temp_directory_path() / "clew-pfw-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~PerfFileWriterTest() override { fs::remove_all(folder_); }
  std::string path() const { return folder_ + "/perf.data"; }

  std::string folder_;
};

// A record and PT of two cores, one of them with a hole.
Status WriteAll(FileSystem& files, const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(writer, PerfFileWriter::Create(files, path));
  std::array<std::byte, 16> record = {};
  record[0] = std::byte{PERF_RECORD_SWITCH};
  record[6] = std::byte{16};
  CLEW_RETURN_IF_ERROR(writer.AddRecord(record));
  CLEW_RETURN_IF_ERROR(writer.EndRound());
  CLEW_RETURN_IF_ERROR(writer.EndRound());
  const std::array<std::byte, 5> pt = {};
  CLEW_RETURN_IF_ERROR(writer.AddPt(CoreId(0), 0, pt, pt));
  CLEW_RETURN_IF_ERROR(writer.AddPt(CoreId(1), 0, pt, {}));
  CLEW_RETURN_IF_ERROR(writer.AddPt(CoreId(1), 100, pt, {}));
  EXPECT_EQ(writer.record_bytes(), 16u + 8u) << "one record, one round";
  EXPECT_EQ(writer.pt_bytes(), 20u);
  PerfFileHead head;
  head.pt_type = 8;
  head.events.push_back({.attr = {}, .name = "intel_pt//u", .ids = {1}});
  return writer.Finish(head, {}, {});
}

TEST_F(PerfFileWriterTest, EveryFileOperationMayFail) {
  int works = 0;
  for (bool done = false; !done; ++works) {
    ASSERT_LT(works, 100) << "it never ends";
    clew::test::FailingFiles files(works);
    const Status status = WriteAll(files, path());
    done = status.has_value();
    EXPECT_TRUE(done || status.error().sys_errno == ENOSPC);
  }
  EXPECT_GT(works, 20);
  size_t left = 0;
  for ([[maybe_unused]] const auto& file : fs::directory_iterator(folder_)) {
    ++left;
  }
  EXPECT_EQ(left, 1u) << "perf.data alone";
  // Head, ids, one attr; a record and a round; three AUXTRACE records.
  const auto bytes = ReadWholeFile(path()).value();
  EXPECT_GT(bytes.size(), 104u + 8 + 144 + 24 + 3 * 48 + 16 + 8 + 8);
}

}  // namespace
}  // namespace clew::recorder
