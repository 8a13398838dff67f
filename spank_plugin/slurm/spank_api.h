// Slurm's plugin interface for C++: spank.h declares the callbacks outside its own extern "C".
#pragma once

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}
