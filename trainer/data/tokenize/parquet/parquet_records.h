// The records of a Parquet file, by Apache Arrow's library, which a build may lack: CMake chooses arrow.cpp,
// the only file that includes its headers, or none.cpp.
//
// Texts, numbers, lists and structs become JSON; a field that is null in a row is an empty text. Row groups
// are read in parts, in memory for a few rows.
#pragma once

#include "trainer/data/tokenize/record_file.h"

namespace sailor {

// Opens the file. Throws InputError naming it: no library, not readable, none of `fields`, a type that has no
// JSON.
std::unique_ptr<RecordFile> open_parquet(const std::string& path, const RecordFields& fields);

}  // namespace sailor
