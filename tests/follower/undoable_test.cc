// Goal: a value is put back as it was at each mark, however often it changed
// and whichever marks were taken back before.
// Method: property, random sequences of changes, marks and returns (printed
// seed) against a reference that copies the value at every mark.
#include "follower/kernel/undoable.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/digest.h"

namespace clew::follower {
namespace {

TEST(UndoableTest, IsPutBackAsItWasAtTheMark) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Undoable<uint64_t> value(0);
    std::vector<uint64_t> marks;
    for (int step = 0; step < 100; ++step) {
      switch (random.Below(8)) {
        case 0:
        case 1:
          EXPECT_EQ(value.SetMark(), marks.size());
          marks.push_back(*value);
          break;
        case 2:
          if (!marks.empty()) {
            const size_t mark = random.Below(marks.size());
            value.RollBack(mark);
            ASSERT_EQ(*value, marks[mark]);
            marks.resize(mark + 1);
          }
          break;
        case 3:
          if (random.Below(8) == 0) {
            value.DropMarks();
            marks.clear();
          }
          break;
        default:
          value.Change() = random.Below(1000);
      }
    }
  }
}

TEST(UndoableTest, ACopyHasTheValueAndNoMarks) {
  Undoable<uint64_t> value(1);
  value.SetMark();
  value.Change() = 2;
  Undoable<uint64_t> copy(value);
  EXPECT_EQ(*copy, 2u);
  EXPECT_EQ(copy.SetMark(), 0u);
  copy = value;
  EXPECT_EQ(copy.SetMark(), 0u);
  value.RollBack(0);
  EXPECT_EQ(*value, 1u);
  EXPECT_EQ(*copy, 2u);
}

}  // namespace
}  // namespace clew::follower
