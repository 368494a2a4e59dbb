package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// filled returns the value with every ${name} replaced.
func filled(value any, known object) any {
	switch value := value.(type) {
	case object:
		made := object{}
		for name, each := range value {
			made[name] = filled(each, known)
		}
		return made
	case []any:
		made := []any{}
		for _, each := range value {
			made = append(made, filled(each, known))
		}
		return made
	case string:
		if strings.HasPrefix(value, "${") {
			return known[strings.Trim(value, "${}")]
		}
	}
	return value
}

// at returns what a path leads to; `*` goes through a list, and what is not there is nil.
func at(value any, path string) any {
	if path == "" {
		return value
	}
	first, rest, _ := strings.Cut(path, ".")
	switch value := value.(type) {
	case object:
		return at(value[first], rest)
	case []any:
		if first == "*" {
			made := []any{}
			for _, each := range value {
				made = append(made, at(each, rest))
			}
			return made
		}
		if index, err := strconv.Atoi(first); err == nil && index < len(value) {
			return at(value[index], rest)
		}
	}
	return nil
}

func holds(check object, found any, known object) bool {
	value := at(found, check["path"].(string))
	list, _ := value.([]any)
	if expected, is := check["equals"]; is {
		return same(value, filled(expected, known))
	}
	if expected, is := check["length"]; is {
		return float64(len(list)) == expected
	}
	if part, is := check["contains"]; is {
		text, isText := value.(string)
		return isText && strings.Contains(text, part.(string))
	}
	if _, is := check["descends"]; is {
		for index := 1; index < len(list); index++ {
			if list[index-1].(float64) < list[index].(float64) {
				return false
			}
		}
		return len(list) > 0
	}
	if sums, is := check["sums"].(object); is {
		for _, each := range list {
			total := 0.0
			for _, part := range at(each, sums["of"].(string)).([]any) {
				total += part.(float64)
			}
			if total != at(each, sums["to"].(string)) {
				return false
			}
		}
		return len(list) > 0
	}
	panic(fmt.Sprintf("unknown check %v", check))
}

// same is equality as JSON of messages: what is unset is a default, and a long number may be a text.
func same(one, other any) bool {
	list, isList := one.([]any)
	others, isOthers := other.([]any)
	if isList && isOthers {
		if len(list) != len(others) {
			return false
		}
		for index := range list {
			if !same(list[index], others[index]) {
				return false
			}
		}
		return true
	}
	if text, is := one.(string); is {
		if number, is := other.(float64); is {
			return text == strconv.FormatFloat(number, 'f', -1, 64)
		}
	}
	return reflect.DeepEqual(one, other) || isDefault(one) && isDefault(other)
}

func isDefault(value any) bool {
	list, isList := value.([]any)
	return value == nil || value == "" || value == 0.0 || value == false || isList && len(list) == 0
}
