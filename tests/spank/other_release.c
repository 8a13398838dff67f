/* A plugin built against another release of Slurm. */
#include <slurm/spank.h>
#undef SLURM_VERSION_NUMBER
#define SLURM_VERSION_NUMBER 0x130500 /* 19.05 */
SPANK_PLUGIN(sailor, 1)
