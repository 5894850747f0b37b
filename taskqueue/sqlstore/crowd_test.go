package sqlstore

func crowdRole() bool { return false }
func crowdProcess()   {}
