// Goal: no user but root has all of the saves at once, and the room that saves
// may take is counted until they end.
#include "daemon/pipeline/saves_at_work.h"

#include <gtest/gtest.h>

namespace clew::daemon {
namespace {

constexpr uint32_t kRoot = 0;
constexpr uint32_t kOneUser = 1000;
constexpr uint32_t kOtherUser = 1001;

TEST(SavesAtWorkTest, AUserHasHalfAndLeavesTheRestToOthers) {
  SavesAtWork saves;
  saves.Add(1, kOneUser, 10);
  EXPECT_FALSE(saves.IsFullFor(kOneUser, 4));
  saves.Add(2, kOneUser, 10);
  EXPECT_TRUE(saves.IsFullFor(kOneUser, 4));
  EXPECT_FALSE(saves.IsFullFor(kOtherUser, 4));
  EXPECT_FALSE(saves.IsFullFor(kRoot, 4));
}

TEST(SavesAtWorkTest, NobodyHasMoreThanThereAre) {
  SavesAtWork saves;
  for (Saver::Id id = 1; id <= 3; ++id) {
    saves.Add(id, kRoot, 10);
  }
  EXPECT_FALSE(saves.IsFullFor(kRoot, 4));
  saves.Add(4, kOneUser, 10);
  EXPECT_TRUE(saves.IsFullFor(kRoot, 4));
  EXPECT_TRUE(saves.IsFullFor(kOtherUser, 4));
}

TEST(SavesAtWorkTest, TheirRoomIsTakenUntilTheyEnd) {
  SavesAtWork saves;
  EXPECT_EQ(saves.bytes_max(), 0u);
  saves.Add(1, kOneUser, 100);
  saves.Add(2, kRoot, 30);
  EXPECT_EQ(saves.bytes_max(), 130u);
  saves.Remove(1);
  EXPECT_EQ(saves.bytes_max(), 30u);
  EXPECT_EQ(saves.count(), 1u);
  saves.Remove(1);
  EXPECT_EQ(saves.count(), 1u);
}

}  // namespace
}  // namespace clew::daemon
