/* Slurm's plugin interface for C and C++: spank.h declares the callbacks outside its own extern "C". */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#include <slurm/slurm.h>
#include <slurm/spank.h>
#ifdef __cplusplus
}
#endif
