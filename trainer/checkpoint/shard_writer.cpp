#include "trainer/checkpoint/shard_writer.h"

#include <fmt/format.h>

#include "planner/spec/strict_json.h"
#include "planner/spec/text.h"
#include "trainer/checkpoint/block_checksums.h"
#include "trainer/checkpoint/safetensors.h"

namespace sailor {
namespace {

std::string stored_name(const ShardPiece& piece) {
  return fmt::format("{}@{}", piece.tensor, piece.first);
}

}  // namespace

WrittenShard write_shard(const std::string& directory, const std::string& name,
                         const std::vector<ShardPiece>& pieces, const std::atomic<bool>* stop) {
  std::vector<StoredTensor> tensors;
  for (const ShardPiece& piece : pieces) tensors.push_back({stored_name(piece), piece.dtype, {piece.count}});
  BlockChecksums checksums;
  SafetensorsWriter writer(directory + "/" + name, tensors, {}, &checksums, stop);
  std::map<std::string, const ShardPiece*> by_name;
  for (const ShardPiece& piece : pieces) by_name[stored_name(piece)] = &piece;
  WrittenShard shard;
  shard.file.name = name;
  shard.file.bytes = writer.file_bytes();
  for (const StoredTensor& tensor : writer.tensors()) {
    const ShardPiece& piece = *by_name.at(tensor.name);
    writer.write(tensor.name, piece.data, tensor.bytes);
    shard.file.pieces.push_back({shard.contents.size(), piece.first, piece.count, tensor.first_byte});
    shard.contents.push_back(piece);
    shard.contents.back().data = nullptr;
  }
  writer.finish();
  shard.file.checksums = checksums.finish();
  return shard;
}

std::string to_text(const WrittenShard& shard) {
  StrictJson json = {{"name", shard.file.name},
                     {"bytes", shard.file.bytes},
                     {"checksums", shard.file.checksums},
                     {"pieces", StrictJson::array()}};
  for (std::size_t i = 0; i < shard.contents.size(); ++i) {
    const ShardPiece& piece = shard.contents[i];
    json["pieces"].push_back(
        {piece.tensor, piece.dtype, piece.first, piece.count, shard.file.pieces[i].byte});
  }
  return json.dump();
}

WrittenShard parse_shard(const std::string& text) try {
  const StrictJson json = StrictJson::parse(text);
  WrittenShard shard;
  shard.file.name = json.at("name");
  shard.file.bytes = json.at("bytes");
  shard.file.checksums = json.at("checksums");
  for (const StrictJson& entry : json.at("pieces")) {
    ShardPiece piece{entry.at(0), entry.at(1), entry.at(2), entry.at(3)};
    shard.file.pieces.push_back({shard.contents.size(), piece.first, piece.count, entry.at(4)});
    shard.contents.push_back(std::move(piece));
  }
  return shard;
} catch (const std::exception& error) {
  throw std::runtime_error(fmt::format("the message of a written shard: {:.300}", one_line(error.what())));
}

}  // namespace sailor
