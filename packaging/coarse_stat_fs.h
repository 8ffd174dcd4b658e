/* SPDX-License-Identifier: MIT */
/* Installed as <coarse_stat_fs.h>: the reader lives beside the layouts that it includes. */
#include "statpage/lib/coarse_stat_fs.h"
