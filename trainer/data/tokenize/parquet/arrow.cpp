#include <arrow/api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <parquet/arrow/reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>

#include <exception>
#include <filesystem>
#include <numeric>

#include "planner/spec/name_list.h"
#include "trainer/data/tokenize/parquet/parquet_records.h"

namespace sailor {
namespace {

using Json = nlohmann::json;

constexpr int64_t kRowsAtOnce = 64;

class ParquetRecords final : public RecordFile {
 public:
  ParquetRecords(const std::string& path, const RecordFields& fields)
      : path_(path), bytes_(static_cast<int64_t>(std::filesystem::file_size(path))) {
    guarded([&] { open(fields); });
  }

  bool next(DataRecord& record) override {
    while (!batch_ || row_in_batch_ == batch_->num_rows()) {
      guarded([&] { check(batches_->ReadNext(&batch_)); });
      row_in_batch_ = 0;
      if (!batch_) return false;
    }
    record.where = {fmt::format("{}, row {}", path_, row_), 0};
    record.position = position(row_);
    record.end = position(++row_);
    record.fields = Json::object();
    guarded([&] {
      for (int i = 0; i < batch_->num_columns(); ++i) {
        Json value = value_at(*batch_->column(i), row_in_batch_);
        record.fields[batch_->schema()->field(i)->name()] = value.is_null() ? Json("") : std::move(value);
      }
    });
    ++row_in_batch_;
    return true;
  }

 private:
  void open(const RecordFields& fields) {
    parquet::arrow::FileReaderBuilder builder;
    check(builder.OpenFile(path_, true));
    parquet::ArrowReaderProperties properties;
    properties.set_batch_size(kRowsAtOnce);
    properties.set_pre_buffer(false);
    check(builder.properties(properties)->Build(&reader_));
    const auto metadata = reader_->parquet_reader()->metadata();
    rows_ = metadata->num_rows();
    std::vector<int> columns;
    for (int i = 0; i < metadata->schema()->num_columns(); ++i) {
      if (contains(fields.names, metadata->schema()->Column(i)->path()->ToDotVector()[0]))
        columns.push_back(i);
    }
    if (columns.empty()) {
      std::vector<std::string> names;
      for (int i = 0; i < metadata->schema()->group_node()->field_count(); ++i)
        names.push_back(metadata->schema()->group_node()->field(i)->name());
      throw InputError(
          Where{path_, 0},
          fmt::format("has no column {} (columns: {}); name the column of the text with --column",
                      fields.names.front(), fmt::join(names, ", ")));
    }
    std::vector<int> groups(static_cast<std::size_t>(reader_->num_row_groups()));
    std::iota(groups.begin(), groups.end(), 0);
    batches_ = read_batches(*reader_, groups, columns);
  }

  // Earlier releases return the status alone.
  template <class Reader>
  std::unique_ptr<arrow::RecordBatchReader> read_batches(Reader& reader, const std::vector<int>& groups,
                                                         const std::vector<int>& columns) const {
    if constexpr (requires { reader.GetRecordBatchReader(groups, columns).status(); }) {
      auto result = reader.GetRecordBatchReader(groups, columns);
      check(result.status());
      return std::move(result).ValueUnsafe();
    } else {
      std::unique_ptr<arrow::RecordBatchReader> batches;
      check(reader.GetRecordBatchReader(groups, columns, &batches));
      return batches;
    }
  }

  template <class List>
  Json list_at(const List& list, int64_t row) const {
    Json values = Json::array();
    for (int64_t i = list.value_offset(row); i < list.value_offset(row + 1); ++i)
      values.push_back(value_at(*list.values(), i));
    return values;
  }

  Json value_at(const arrow::Array& array, int64_t row) const {
    if (array.IsNull(row)) return nullptr;
    switch (array.type_id()) {
      case arrow::Type::STRING:
        return static_cast<const arrow::StringArray&>(array).GetString(row);
      case arrow::Type::LARGE_STRING:
        return static_cast<const arrow::LargeStringArray&>(array).GetString(row);
      case arrow::Type::STRING_VIEW:
        return static_cast<const arrow::StringViewArray&>(array).GetString(row);
      case arrow::Type::BOOL:
        return static_cast<const arrow::BooleanArray&>(array).Value(row);
      case arrow::Type::INT32:
        return static_cast<const arrow::Int32Array&>(array).Value(row);
      case arrow::Type::INT64:
        return static_cast<const arrow::Int64Array&>(array).Value(row);
      case arrow::Type::DOUBLE:
        return static_cast<const arrow::DoubleArray&>(array).Value(row);
      case arrow::Type::LIST:
        return list_at(static_cast<const arrow::ListArray&>(array), row);
      case arrow::Type::LARGE_LIST:
        return list_at(static_cast<const arrow::LargeListArray&>(array), row);
      case arrow::Type::DICTIONARY: {
        const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
        return value_at(*dictionary.dictionary(), dictionary.GetValueIndex(row));
      }
      case arrow::Type::STRUCT: {
        const auto& parts = static_cast<const arrow::StructArray&>(array);
        Json object = Json::object();
        for (int i = 0; i < parts.num_fields(); ++i)
          object[parts.type()->field(i)->name()] = value_at(*parts.field(i), row);
        return object;
      }
      default:
        throw InputError(Where{path_, 0},
                         fmt::format("a column has the type {}, which is not supported (known: "
                                     "string, bool, int32, int64, double, lists, structs)",
                                     array.type()->ToString()));
    }
  }

  // Rows count alike: how many bytes each has is not known.
  int64_t position(int64_t row) const {
    return static_cast<int64_t>(static_cast<double>(bytes_) * static_cast<double>(row) /
                                static_cast<double>(rows_));
  }

  void check(const arrow::Status& status) const {
    if (!status.ok()) throw InputError(Where{path_, 0}, "cannot be read as Parquet: " + status.message());
  }
  template <class Do>
  void guarded(const Do& action) const {
    try {
      action();
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      throw InputError(Where{path_, 0}, fmt::format("cannot be read as Parquet: {}", error.what()));
    }
  }

  std::string path_;
  int64_t bytes_;
  int64_t rows_ = 0, row_ = 0, row_in_batch_ = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;  // needs the reader
  std::shared_ptr<arrow::RecordBatch> batch_;
};

}  // namespace

std::unique_ptr<RecordFile> open_parquet(const std::string& path, const RecordFields& fields) {
  return std::make_unique<ParquetRecords>(path, fields);
}

}  // namespace sailor
