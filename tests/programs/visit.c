// The library of visitor.c.
#include "tests/programs/visit.h"

void Visit(void (*visitor)(void)) {
  visitor();  // VISITS
}
