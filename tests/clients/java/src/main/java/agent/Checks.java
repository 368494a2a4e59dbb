package agent;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;

/** The paths and checks of the scenario. */
final class Checks {
  private Checks() {}

  /** The value with every ${name} replaced. */
  static JsonElement filled(JsonElement value, JsonObject known) {
    if (value.isJsonObject()) {
      JsonObject made = new JsonObject();
      value.getAsJsonObject().entrySet().forEach(each -> made.add(each.getKey(), filled(each.getValue(), known)));
      return made;
    }
    if (value.isJsonArray()) {
      JsonArray made = new JsonArray();
      value.getAsJsonArray().forEach(each -> made.add(filled(each, known)));
      return made;
    }
    String text = isText(value) ? value.getAsString() : "";
    return text.startsWith("${") ? known.get(text.substring(2, text.length() - 1)) : value;
  }

  /** What a path leads to; `*` goes through a list, and what is not there is null. */
  static JsonElement at(JsonElement value, String path) {
    if (value == null || path.isEmpty()) {
      return value;
    }
    String[] parts = path.split("\\.", 2);
    String rest = parts.length > 1 ? parts[1] : "";
    if (value.isJsonArray()) {
      JsonArray list = value.getAsJsonArray();
      if (parts[0].equals("*")) {
        JsonArray made = new JsonArray();
        list.forEach(each -> made.add(at(each, rest)));
        return made;
      }
      int index = Integer.parseInt(parts[0]);
      return index < list.size() ? at(list.get(index), rest) : null;
    }
    return value.isJsonObject() ? at(value.getAsJsonObject().get(parts[0]), rest) : null;
  }

  static boolean holds(JsonObject check, JsonElement found, JsonObject known) {
    JsonElement value = at(found, check.get("path").getAsString());
    JsonArray list = value != null && value.isJsonArray() ? value.getAsJsonArray() : new JsonArray();
    if (check.has("equals")) {
      return same(value, filled(check.get("equals"), known));
    }
    if (check.has("length")) {
      return list.size() == check.get("length").getAsInt();
    }
    if (check.has("contains")) {
      return isText(value) && value.getAsString().contains(check.get("contains").getAsString());
    }
    if (check.has("descends")) {
      for (int index = 1; index < list.size(); index++) {
        if (list.get(index - 1).getAsDouble() < list.get(index).getAsDouble()) {
          return false;
        }
      }
      return !list.isEmpty();
    }
    if (check.has("sums")) {
      JsonObject sums = check.getAsJsonObject("sums");
      for (JsonElement each : list) {
        double total = 0;
        for (JsonElement part : at(each, sums.get("of").getAsString()).getAsJsonArray()) {
          total += part.getAsDouble();
        }
        if (total != at(each, sums.get("to").getAsString()).getAsDouble()) {
          return false;
        }
      }
      return !list.isEmpty();
    }
    throw new IllegalArgumentException("unknown check " + check);
  }

  /** Equal as JSON of messages: what is unset is a default, and a long number may be a text. */
  private static boolean same(JsonElement one, JsonElement other) {
    if (isDefault(one) || isDefault(other)) {
      return isDefault(one) && isDefault(other);
    }
    if (one.isJsonArray() && other.isJsonArray()) {
      JsonArray list = one.getAsJsonArray();
      JsonArray others = other.getAsJsonArray();
      boolean all = list.size() == others.size();
      for (int index = 0; all && index < list.size(); index++) {
        all = same(list.get(index), others.get(index));
      }
      return all;
    }
    if (isNumber(other)) {
      return isNumber(one)
          ? one.getAsDouble() == other.getAsDouble()
          : isText(one) && one.getAsString().equals(other.getAsString());
    }
    return one.equals(other);
  }

  private static boolean isDefault(JsonElement value) {
    if (value == null || value.isJsonNull()) {
      return true;
    }
    if (value.isJsonArray()) {
      return value.getAsJsonArray().isEmpty();
    }
    if (!value.isJsonPrimitive()) {
      return false;
    }
    JsonPrimitive found = value.getAsJsonPrimitive();
    return found.isBoolean()
        ? !found.getAsBoolean()
        : found.isNumber() ? found.getAsDouble() == 0 : found.getAsString().isEmpty();
  }

  private static boolean isText(JsonElement value) {
    return value != null && value.isJsonPrimitive() && value.getAsJsonPrimitive().isString();
  }

  private static boolean isNumber(JsonElement value) {
    return value.isJsonPrimitive() && value.getAsJsonPrimitive().isNumber();
  }
}
