// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo's headers in an order in which they compile, with the part that shows its stages. Nothing
// else.
#pragma once

#include <cstdio>  // before <jpeglib.h>, which uses FILE without declaring it

#include <jpeglib.h>

#include <jerror.h>

extern "C" {
#include <jpegint.h>
}
