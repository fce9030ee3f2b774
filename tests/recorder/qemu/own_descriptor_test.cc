// Goal: the recorder's descriptors are told from the program's, also where a
// range has both.
// Method: real descriptors of this process.
#include "recorder/qemu/calls/own_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <climits>

namespace clew::recorder {
namespace {

TEST(OwnDescriptorTest, AreHighAndOwnUntilTheyAreClosed) {
  const int low = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int own = TakeDescriptor(low);
  EXPECT_GT(own, 100);
  EXPECT_TRUE(IsOwnDescriptor(own));
  EXPECT_FALSE(IsOwnDescriptor(low));
  EXPECT_FALSE(IsOwnDescriptor(-1));
  EXPECT_FALSE(IsOwnDescriptor(INT_MAX));
  EXPECT_EQ(CloseOwnDescriptor(own), 0);
  EXPECT_FALSE(IsOwnDescriptor(own));
  EXPECT_EQ(fcntl(own, F_GETFD), -1);
}

TEST(OwnDescriptorTest, ARangeIsSplitAroundThem) {
  const auto own =
      static_cast<unsigned>(TakeDescriptor(open("/dev/null", O_RDONLY)));
  const auto split = [](unsigned first, unsigned last) {
    std::vector<std::pair<unsigned, unsigned>> ranges;
    for (const auto& range : WithoutOwn({.first = first, .last = last})) {
      ranges.emplace_back(range.first, range.last);
    }
    return ranges;
  };
  using Ranges = std::vector<std::pair<unsigned, unsigned>>;
  EXPECT_EQ(split(3, UINT_MAX), (Ranges{{3, own - 1}, {own + 1, UINT_MAX}}));
  EXPECT_EQ(split(own, own + 1), (Ranges{{own + 1, own + 1}}));
  EXPECT_EQ(split(own - 1, own), (Ranges{{own - 1, own - 1}}));
  EXPECT_EQ(split(own, own), Ranges());
  EXPECT_EQ(split(3, 4), (Ranges{{3, 4}}));
  CloseOwnDescriptor(static_cast<int>(own));
}

}  // namespace
}  // namespace clew::recorder
