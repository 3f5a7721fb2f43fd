// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo's headers in an order in which they compile, and whether our Huffman stage can be built on them.
#pragma once

#include <cstdio>  // before <jpeglib.h>, which uses FILE without declaring it

#include <jpeglib.h>

#include <jerror.h>

// The private structures that the stage reads were looked at in these versions: 2.0 to 3.1. Others, and installations
// without the private header, decode with libjpeg's own stage.
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && __has_include(<jpegint.h>)
#if LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && LIBJPEG_TURBO_VERSION_NUMBER < 3002000
#define STOKER_HAS_ENTROPY_STAGE 1
extern "C" {
#include <jpegint.h>
}
#endif
#endif
