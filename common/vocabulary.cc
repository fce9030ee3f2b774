// Keeps the headers without code of their own compiling on their own.
#include "common/access.h"
#include "common/inputs.h"
#include "common/schedule.h"
#include "common/stream.h"
#include "common/units.h"
